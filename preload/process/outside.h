/* Processes that the program's environment reaches though they are none of its own: Slurm's prologs, submissions. */
#pragma once

#include "tz.h"

/* Is this one of them? */
bool tz_outside(void);

/* Takes what `tarazu run` put into the environment out of it again, so that nothing that this process starts has it. */
void tz_leave(void);
