/* SipHash-2-4 with a 64-bit result (Aumasson and Bernstein), as a stream: a state can be copied and continued. */
#ifndef TZ_SIPHASH_H
#define TZ_SIPHASH_H

#include "tz.h"

struct tz_sip {
    uint64_t v[4];
    uint64_t tail;  /* bytes not yet compressed, little-endian */
    uint64_t total; /* bytes seen */
};

void tz_sip_init(struct tz_sip *s, const uint8_t key[16]);
void tz_sip_add(struct tz_sip *s, const void *data, size_t length);
uint64_t tz_sip_end(struct tz_sip *s);

TZ_API uint64_t tz_siphash(const uint8_t key[16], const void *data, size_t length);

#endif
