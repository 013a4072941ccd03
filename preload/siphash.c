#include "siphash.h"

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

static inline void round_(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ROTL(v[1], 13) ^ v[0];
    v[0] = ROTL(v[0], 32);
    v[2] += v[3];
    v[3] = ROTL(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTL(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTL(v[1], 17) ^ v[2];
    v[2] = ROTL(v[2], 32);
}

static inline void compress(struct tz_sip *s, uint64_t word)
{
    s->v[3] ^= word;
    round_(s->v);
    round_(s->v);
    s->v[0] ^= word;
}

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

void tz_sip_add(struct tz_sip *s, const void *data, size_t length)
{
    const uint8_t *p = data;
    unsigned held = s->total & 7;

    s->total += length;
    if (held) {
        while (held < 8 && length) {
            s->tail |= (uint64_t)*p++ << (8 * held++);
            length--;
        }
        if (held < 8)
            return;
        compress(s, s->tail);
        s->tail = 0;
    }
    for (; length >= 8; length -= 8, p += 8)
        compress(s, tz_get64(p));
    for (unsigned i = 0; i < length; i++)
        s->tail |= (uint64_t)p[i] << (8 * i);
}

uint64_t tz_sip_end(struct tz_sip *s)
{
    compress(s, s->tail | s->total << 56);
    s->v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        round_(s->v);
    return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

uint64_t tz_siphash(const uint8_t key[16], const void *data, size_t length)
{
    struct tz_sip s;

    tz_sip_init(&s, key);
    tz_sip_add(&s, data, length);
    return tz_sip_end(&s);
}
