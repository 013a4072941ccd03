/* Files of the kernel's, line by line. */
#pragma once

#include "tz.h"

/*
 * Of the file `path` in the directory `at`: calls `each` with every line, NUL-terminated, which it may change, until it
 * says that this was enough. Lines of 64 KiB and more are left out. False where the file cannot be read.
 */
bool tz_lines(int at, const char *path, bool (*each)(char *line, char *end, void *argument), void *argument);
