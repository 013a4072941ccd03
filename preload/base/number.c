/* Numbers as text, where printf and strtol may not be called: hooks run in signal handlers. */
#include "base/number.h"

size_t tz_put_number(char *out, uint64_t value, unsigned base)
{
    char digits[24];
    size_t n = 0, length = 0;

    do
        digits[n++] = "0123456789abcdef"[value % base];
    while (value /= base);
    while (n)
        out[length++] = digits[--n];
    return length;
}

uint64_t tz_read_number(const char **text, unsigned base)
{
    uint64_t value = 0;

    for (; **text >= '0' && **text < (char)('0' + base); ++*text)
        if (value <= UINT32_MAX)
            value = value * base + (uint64_t)(**text - '0');
    return value;
}
