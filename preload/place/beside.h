/* The name under which a shared file gets its layout, beside its own. */
#pragma once

#include "place/create.h"

/*
 * `.tarazu-<step>-<number>` in the directory of the call's path, relative to the same descriptor; both are 16 digits in
 * hex: which step's, by the map's hash key, so that its leader finds what a killed process left, and a number of this
 * process's own. False where the path has no last part, or there is no room.
 */
bool tz_beside(const struct tz_create *create, char out[TZ_PATH_MAX]);
