/* Copies of this process: each becomes a process of its own. */
#pragma once

/* This process is the one that the settings were read for; copies are noticed from now on. */
void tz_fork_begin(void);
