/* Names of functions in loaded libraries, found without libdl.so.2: loading that takes longer than all that is done
 * here. */
#pragma once

#include "tz.h"

/* What the libraries behind this one, in the order in which they are searched, define under a name; NULL: nothing. */
void *tz_symbol_behind(const char *name);

/* The same of the one library that dlopen gave. */
void *tz_symbol_of(const void *library, const char *name);
