/* Whether the kernel holds this thread's system calls against a list (seccomp), and ends it for one that is not there.
 */
#pragma once

#include "tz.h"

/*
 * By /proc, with the three calls that every loader makes, and any program that opens files: on what a list allows
 * nothing else can be relied. True also where it cannot be told.
 */
bool tz_filtered(void);
