/* Leaving a process alone whose system calls are held against a list (seccomp). */
#pragma once

#include "tz.h"

/* The list is about to be set: what there is to tell is told, and from then on nothing is done here any more. */
void tz_withdraw(void);

/* Whether one was set past libc before the first file is opened: then nothing is done from then on either. */
bool tz_withdrawn(void);
