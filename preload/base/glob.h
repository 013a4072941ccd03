/* Globs, as fnmatch(3) has them without flags; that one takes much of the stack, and memory from malloc. */
#pragma once

#include "tz.h"

/* Does all of `text` match? `*` takes slashes too, `?` and a set like [a-z], [!0-9] one character of UTF-8 or byte. */
bool tz_glob(const char *glob, size_t length, const char *text);
