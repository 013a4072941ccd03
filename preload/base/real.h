/* The wrapped functions themselves: resolved at first use, since hooks run before any constructor. */
#pragma once

#include "tz.h"

#include <dirent.h>
#include <link.h>
#include <stdio.h>
#include <sys/uio.h>

enum tz_symbol {
#define TZ_WRAP(result, name, parameters) TZ_SYM_##name,
#include "wrap.def"
#undef TZ_WRAP
    TZ_SYM_COUNT
};

#define TZ_WRAP(result, name, parameters) typedef result tz_fn_##name parameters;
#include "wrap.def"
#undef TZ_WRAP

extern void *tz_real_table[TZ_SYM_COUNT];

/* Never NULL: a symbol that no later library has becomes a function that fails with ENOSYS. */
void *tz_resolve(enum tz_symbol symbol);

/* All of them now: later on there may be no room for it. */
void tz_resolve_all(void);

static inline void *tz_real_symbol(enum tz_symbol symbol)
{
    void *p = __atomic_load_n(&tz_real_table[symbol], __ATOMIC_RELAXED);

    return tz_likely(p != NULL) ? p : tz_resolve(symbol);
}

#define REAL(name) ((tz_fn_##name *)tz_real_symbol(TZ_SYM_##name))
