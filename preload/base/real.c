/* Finding the wrapped functions: the next definition of each name behind this library. */
#include "base/real.h"
#include "base/symbols.h"

void *tz_real_table[TZ_SYM_COUNT];

static const char *const symbol_name[TZ_SYM_COUNT] = {
#define TZ_WRAP(result, name, parameters) #name,
#include "wrap.def"
#undef TZ_WRAP
};

static const bool returns_pointer[TZ_SYM_COUNT] = {
    [TZ_SYM_fopen] = true,     [TZ_SYM_fopen64] = true, [TZ_SYM_freopen] = true,
    [TZ_SYM_freopen64] = true, [TZ_SYM_fdopen] = true,  [TZ_SYM_fwrite] = true,
};

static long missing(void)
{
    errno = ENOSYS;
    return -1;
}

static void *missing_pointer(void)
{
    errno = ENOSYS;
    return NULL;
}

static void *keep(enum tz_symbol symbol, void *found)
{
    if (!found)
        found = returns_pointer[symbol] ? (void *)missing_pointer : (void *)missing;
    __atomic_store_n(&tz_real_table[symbol], found, __ATOMIC_RELAXED);
    return found;
}

void *tz_resolve(enum tz_symbol symbol)
{
    int saved = errno;
    void *found = keep(symbol, tz_symbol_behind(symbol_name[symbol]));

    errno = saved;
    return found;
}

_Static_assert((int)TZ_SYM_COUNT <= (int)TZ_SYMBOLS_AT_ONCE, "they are looked up together");

void tz_resolve_all(void)
{
    void *found[TZ_SYM_COUNT];
    int saved = errno;

    for (int symbol = 0; symbol < TZ_SYM_COUNT; symbol++)
        found[symbol] = tz_relaxed(&tz_real_table[symbol]);
    tz_symbols_behind(symbol_name, found, TZ_SYM_COUNT);
    for (int symbol = 0; symbol < TZ_SYM_COUNT; symbol++)
        keep((enum tz_symbol)symbol, found[symbol]);
    errno = saved;
}
