/* Mappings, and how many bytes of them there are. */
#include "base/pages.h"

#include <sys/resource.h>

/* What is always allowed is the first piece of the node file, a spool and the control page. */
enum { SHARE = 64, STEP = 1 << 20, ALWAYS = 272 << 10 };

static uint64_t taken; /* atomic: bytes of address space */

#ifndef TZ_CORE
static uint64_t limit_of(int resource)
{
    struct rlimit limit;

    if (getrlimit((__rlimit_resource_t)resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur / SHARE;
}
#endif

static uint64_t rounded(size_t size)
{
    return (size + TZ_PAGE - 1) & ~(uint64_t)(TZ_PAGE - 1);
}

/* In a program of our own (libtarazu_core.so) nothing is to be left for others. */
static uint64_t limit_here(void)
{
#ifdef TZ_CORE
    return UINT64_MAX;
#else
    uint64_t all = limit_of(RLIMIT_AS), data = limit_of(RLIMIT_DATA);

    return all < data ? all : data;
#endif
}

/* Limits are asked for when there is so much more than the last time, not at each mapping. */
static bool take(size_t size)
{
    static uint64_t granted; /* atomic: to here no limit was in the way */
    uint64_t all = __atomic_add_fetch(&taken, rounded(size), __ATOMIC_RELAXED), limit;

    if (all <= ALWAYS || all <= tz_relaxed(&granted))
        return true;
    limit = limit_here();
    if (all <= limit) {
        __atomic_store_n(&granted, all + STEP < limit ? all + STEP : limit, __ATOMIC_RELAXED);
        return true;
    }
    __atomic_sub_fetch(&taken, rounded(size), __ATOMIC_RELAXED);
    return false;
}

static void *map(size_t size, int protection, int flags, int fd, uint64_t offset)
{
    void *pages = MAP_FAILED;

    if (take(size)) {
        pages = mmap(NULL, size, protection, flags, fd, (off_t)offset);
        if (pages == MAP_FAILED)
            __atomic_sub_fetch(&taken, rounded(size), __ATOMIC_RELAXED);
    }
    return pages == MAP_FAILED ? NULL : pages;
}

void *tz_pages(size_t size)
{
    return map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void *tz_pages_of(int fd, uint64_t offset, size_t size, int protection)
{
    return map(size, protection, MAP_SHARED, fd, offset);
}

void tz_pages_free(void *pages, size_t size)
{
    if (!pages)
        return;
    munmap(pages, size);
    __atomic_sub_fetch(&taken, rounded(size), __ATOMIC_RELAXED);
}
