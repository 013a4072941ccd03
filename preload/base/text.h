/* Texts put together, numbers as text, and the paths of descriptors. */
#pragma once

#include "tz.h"

/* Texts one behind the other, up to a NULL; false when `out` is too small for them. */
bool tz_join(char *out, size_t size, const char *const *texts);

/* Writes the digits and a NUL; returns how many. `base` is 16 at most, 21 bytes are enough for base 10. */
size_t tz_put_number(char *out, uint64_t value, unsigned base);

/* The number that `count` digits stand for; UINT64_MAX for a larger one. */
static inline uint64_t tz_number_of(const char *digits, size_t count, unsigned base)
{
    uint64_t value = 0;

    for (size_t i = 0; i < count; i++)
        value = value > UINT64_MAX / base - 1 ? UINT64_MAX : value * base + (uint64_t)(digits[i] - '0');
    return value;
}

/* The number at *text, which is moved behind its digits; `base` is 10 at most. */
uint64_t tz_read_number(const char **text, unsigned base);

enum { TZ_FD_LINK_MAX = 48 };

/* What a descriptor of this thread's stands for, as a path: /proc/thread-self/fd/<fd>. */
void tz_fd_link(int fd, char out[TZ_FD_LINK_MAX]);

/* The path of a descriptor, by /proc, in `out` of TZ_PATH_MAX bytes; its length, 0 where it has none. */
size_t tz_fd_path(int fd, char *out);
