/* Names of functions in loaded libraries, found without libdl.so.2: loading that takes longer than all that is done
 * here. */
#pragma once

#include "tz.h"

enum { TZ_SYMBOLS_AT_ONCE = 64 };

/* What the libraries behind this one, in the order in which they are searched, define under a name; NULL: nothing. */
void *tz_symbol_behind(const char *name);

/* The same of several, where `found` is NULL: each library is read once, and programs have hundreds of them. */
void tz_symbols_behind(const char *const *names, void **found, unsigned count);

/* The same of the one library that dlopen gave. */
void *tz_symbol_of(const void *library, const char *name);
