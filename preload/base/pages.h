/*
 * Memory, never from malloc: hooks run inside of it. Where the process may have only so much (`ulimit -v`, `-d`, as
 * batch systems set), all of it together is a 64th of that at most.
 */
#pragma once

#include "tz.h"

#include <sys/mman.h>

enum { TZ_PAGE = 4096 }; /* the smallest there is */

/* The whole page within two pages' room. */
static inline void *tz_page_in(char room[2 * TZ_PAGE])
{
    return room + (TZ_PAGE - (uintptr_t)room % TZ_PAGE) % TZ_PAGE;
}

/* Private, and zeroed. NULL when there is none. */
void *tz_pages(size_t size);

/* A part of a file, shared with all that map it; `offset` is a multiple of 4 KiB. NULL when that cannot be. */
void *tz_pages_of(int fd, uint64_t offset, size_t size, int protection);

void tz_pages_free(void *pages, size_t size);

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
