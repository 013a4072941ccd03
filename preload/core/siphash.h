/*
 * SipHash-2-4 with a 64-bit result (Aumasson and Bernstein), as a stream: a state can be copied and continued. All of
 * it is inline, so that the hashes of one lookup, which wait for nothing but themselves, are computed side by side.
 */
#pragma once

#include "base/hash.h"

struct tz_sip {
    uint64_t v[4];
    uint64_t tail;  /* bytes not yet compressed, little-endian */
    uint64_t total; /* bytes seen */
};

#define TZ_ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

/* The four words live in registers: their addresses are never taken. */
#define TZ_SIP_ROUND(a, b, c, d)                                                                                       \
    do {                                                                                                               \
        a += b;                                                                                                        \
        c += d;                                                                                                        \
        b = TZ_ROTL(b, 13) ^ a;                                                                                        \
        d = TZ_ROTL(d, 16) ^ c;                                                                                        \
        a = TZ_ROTL(a, 32);                                                                                            \
        c += b;                                                                                                        \
        a += d;                                                                                                        \
        b = TZ_ROTL(b, 17) ^ c;                                                                                        \
        d = TZ_ROTL(d, 21) ^ a;                                                                                        \
        c = TZ_ROTL(c, 32);                                                                                            \
    } while (0)

#define TZ_SIP_COMPRESS(word)                                                                                          \
    do {                                                                                                               \
        uint64_t w_ = (word);                                                                                          \
        v3 ^= w_;                                                                                                      \
        TZ_SIP_ROUND(v0, v1, v2, v3);                                                                                  \
        TZ_SIP_ROUND(v0, v1, v2, v3);                                                                                  \
        v0 ^= w_;                                                                                                      \
    } while (0)

static inline void tz_sip_init(struct tz_sip *s, const uint8_t key[16])
{
    uint64_t k0 = tz_get64(key), k1 = tz_get64(key + 8);

    s->v[0] = k0 ^ 0x736f6d6570736575ULL;
    s->v[1] = k1 ^ 0x646f72616e646f6dULL;
    s->v[2] = k0 ^ 0x6c7967656e657261ULL;
    s->v[3] = k1 ^ 0x7465646279746573ULL;
    s->tail = 0;
    s->total = 0;
}

static inline void tz_sip_add(struct tz_sip *s, const void *data, size_t length)
{
    uint64_t v0 = s->v[0], v1 = s->v[1], v2 = s->v[2], v3 = s->v[3], tail = s->tail, word;
    unsigned held = 8 * (s->total & 7); /* bits */
    const uint8_t *p = data;

    s->total += length;
    for (; length >= 8; length -= 8, p += 8) {
        word = tz_get64(p);
        TZ_SIP_COMPRESS(tail | word << held);
        tail = held ? word >> (64 - held) : 0;
    }
    word = tz_get_few(p, length);
    tail |= word << held;
    if (held + 8 * length >= 64) {
        TZ_SIP_COMPRESS(tail);
        tail = word >> (64 - held);
    }
    s->v[0] = v0;
    s->v[1] = v1;
    s->v[2] = v2;
    s->v[3] = v3;
    s->tail = tail;
}

static inline uint64_t tz_sip_end(struct tz_sip *s)
{
    uint64_t v0 = s->v[0], v1 = s->v[1], v2 = s->v[2], v3 = s->v[3];

    TZ_SIP_COMPRESS(s->tail | s->total << 56);
    v2 ^= 0xff;
    TZ_SIP_ROUND(v0, v1, v2, v3);
    TZ_SIP_ROUND(v0, v1, v2, v3);
    TZ_SIP_ROUND(v0, v1, v2, v3);
    TZ_SIP_ROUND(v0, v1, v2, v3);
    return v0 ^ v1 ^ v2 ^ v3;
}

TZ_API uint64_t tz_siphash(const uint8_t key[16], const void *data, size_t length);
