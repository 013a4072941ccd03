/* Private zeroed memory, never from malloc: hooks run inside of it. */
#pragma once

#include "tz.h"

#include <sys/mman.h>

/* NULL when there is none. */
static inline void *tz_pages(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static inline void tz_pages_free(void *pages, size_t size)
{
    if (pages)
        munmap(pages, size);
}

/*
 * The pages that the pointer at `at` leads to, made by whichever thread is first and never freed; NULL when there are
 * none.
 */
static inline void *tz_pages_once(void *at, size_t size)
{
    void **pointer = at, *found = tz_load(pointer), *made;

    if (tz_likely(found != NULL))
        return found;
    made = tz_pages(size);
    if (!made || __atomic_compare_exchange_n(pointer, &found, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    tz_pages_free(made, size);
    return found;
}
