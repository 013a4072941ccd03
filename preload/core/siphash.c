/* SipHash of a whole text, for Python. */
#include "core/siphash.h"

uint64_t tz_siphash(const uint8_t key[16], const void *data, size_t length)
{
    struct tz_sip s;

    tz_sip_init(&s, key);
    tz_sip_add(&s, data, length);
    return tz_sip_end(&s);
}
