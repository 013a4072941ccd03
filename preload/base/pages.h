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
