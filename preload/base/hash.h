/* A quick hash for tables inside one process; what leaves the process is hashed with SipHash. */
#pragma once

#include "tz.h"

static inline uint64_t tz_hash_mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Fewer than 8 bytes as a number; the two loads overlap where the length is no power of two. */
static inline uint64_t tz_get_few(const void *data, size_t n)
{
    const uint8_t *p = data;

    if (n >= 4)
        return tz_get32(p) | (uint64_t)tz_get32(p + n - 4) << (8 * (n - 4));
    if (n >= 2)
        return tz_get16(p) | (uint64_t)tz_get16(p + n - 2) << (8 * (n - 2));
    return n ? *p : 0;
}

static inline uint64_t tz_hash_text(const char *p, size_t length, uint64_t seed)
{
    const uint64_t odd = 0x9e3779b97f4a7c15ULL, other = 0xff51afd7ed558ccdULL;
    uint64_t h = tz_hash_mix(seed ^ odd, length ^ other), rest = 0;

    for (; length >= 16; length -= 16, p += 16)
        h = tz_hash_mix(tz_get64(p) ^ odd, tz_get64(p + 8) ^ h);
    if (length >= 8) {
        rest = tz_get64(p);
        p += 8;
        length -= 8;
    }
    return tz_hash_mix(odd, tz_hash_mix(rest ^ other, tz_get_few(p, length) ^ h));
}
