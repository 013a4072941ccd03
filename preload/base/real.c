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

void *tz_resolve(enum tz_symbol symbol)
{
    int saved = errno;
    void *found = tz_symbol_behind(symbol_name[symbol]);

    if (!found)
        found = returns_pointer[symbol] ? (void *)missing_pointer : (void *)missing;
    __atomic_store_n(&tz_real_table[symbol], found, __ATOMIC_RELAXED);
    errno = saved;
    return found;
}
