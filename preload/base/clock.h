/* What time it is. */
#pragma once

#include "tz.h"

#include <time.h>

static inline uint64_t tz_clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static inline uint64_t tz_now_ns(void)
{
    return tz_clock_ns(CLOCK_REALTIME);
}

/* To a few milliseconds, at a fraction of the price. */
static inline uint64_t tz_about_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return (uint64_t)t.tv_sec;
}

/* The same for durations: this clock is never set. */
static inline uint64_t tz_about_steady_ns(void)
{
    return tz_clock_ns(CLOCK_MONOTONIC_COARSE);
}
