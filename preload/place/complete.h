/* The late components of a planned file: their objects, before anybody writes there. */
#pragma once

#include "place/create.h"

/*
 * Looks at the layout of the file that this process has just made and opened at `fd`, sets the outcome, and has the
 * objects of its late components made; where an OST refuses, their lists are given up for start hints, which fall back
 * to other OSTs by themselves. False: no objects can be made ahead on this file system.
 */
bool tz_complete_own(struct tz_create *create, const struct tz_plan *plan, enum tz_request_lists lists, int fd);

/* The same for a file that was there, which somebody may just be making. False: its layout cannot be read. */
bool tz_complete_others(struct tz_create *create, const struct tz_plan *plan, enum tz_request_lists lists, int fd);
