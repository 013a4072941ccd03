#include "siphash.h"

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

/* The four words live in registers: their addresses are never taken. */
#define ROUND(a, b, c, d)                                                                                              \
    do {                                                                                                               \
        a += b;                                                                                                        \
        c += d;                                                                                                        \
        b = ROTL(b, 13) ^ a;                                                                                           \
        d = ROTL(d, 16) ^ c;                                                                                           \
        a = ROTL(a, 32);                                                                                               \
        c += b;                                                                                                        \
        a += d;                                                                                                        \
        b = ROTL(b, 17) ^ c;                                                                                           \
        d = ROTL(d, 21) ^ a;                                                                                           \
        c = ROTL(c, 32);                                                                                               \
    } while (0)

#define COMPRESS(word)                                                                                                 \
    do {                                                                                                               \
        uint64_t w_ = (word);                                                                                          \
        v3 ^= w_;                                                                                                      \
        ROUND(v0, v1, v2, v3);                                                                                         \
        ROUND(v0, v1, v2, v3);                                                                                         \
        v0 ^= w_;                                                                                                      \
    } while (0)

void tz_sip_init(struct tz_sip *s, const uint8_t key[16])
{
    uint64_t k0 = tz_get64(key), k1 = tz_get64(key + 8);

    s->v[0] = k0 ^ 0x736f6d6570736575ULL;
    s->v[1] = k1 ^ 0x646f72616e646f6dULL;
    s->v[2] = k0 ^ 0x6c7967656e657261ULL;
    s->v[3] = k1 ^ 0x7465646279746573ULL;
    s->tail = 0;
    s->total = 0;
}

/* Fewer than 8 bytes as a number; the two loads overlap where the length is no power of two. */
static inline uint64_t few(const uint8_t *p, size_t n)
{
    if (n >= 4)
        return tz_get32(p) | (uint64_t)tz_get32(p + n - 4) << (8 * (n - 4));
    if (n >= 2)
        return tz_get16(p) | (uint64_t)tz_get16(p + n - 2) << (8 * (n - 2));
    return n ? *p : 0;
}

void tz_sip_add(struct tz_sip *s, const void *data, size_t length)
{
    uint64_t v0 = s->v[0], v1 = s->v[1], v2 = s->v[2], v3 = s->v[3], tail = s->tail, word;
    unsigned held = 8 * (s->total & 7); /* bits */
    const uint8_t *p = data;

    s->total += length;
    for (; length >= 8; length -= 8, p += 8) {
        word = tz_get64(p);
        COMPRESS(tail | word << held);
        tail = held ? word >> (64 - held) : 0;
    }
    word = few(p, length);
    tail |= word << held;
    if (held + 8 * length >= 64) {
        COMPRESS(tail);
        tail = word >> (64 - held);
    }
    s->v[0] = v0;
    s->v[1] = v1;
    s->v[2] = v2;
    s->v[3] = v3;
    s->tail = tail;
}

uint64_t tz_sip_end(struct tz_sip *s)
{
    uint64_t v0 = s->v[0], v1 = s->v[1], v2 = s->v[2], v3 = s->v[3];

    COMPRESS(s->tail | s->total << 56);
    v2 ^= 0xff;
    ROUND(v0, v1, v2, v3);
    ROUND(v0, v1, v2, v3);
    ROUND(v0, v1, v2, v3);
    ROUND(v0, v1, v2, v3);
    return v0 ^ v1 ^ v2 ^ v3;
}

uint64_t tz_siphash(const uint8_t key[16], const void *data, size_t length)
{
    struct tz_sip s;

    tz_sip_init(&s, key);
    tz_sip_add(&s, data, length);
    return tz_sip_end(&s);
}
