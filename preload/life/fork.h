/* Copies of this process: each becomes a process of its own. */
#pragma once

#include "tz.h"

/* This process is the one that the settings were read for; copies are noticed from now on; false: this is
 * not glibc, and nothing is noticed. */
bool tz_fork_begin(void);
