/* What printf and strtol would do, and may not: hooks run in signal handlers. */
#include "base/text.h"
#include "base/rawsys.h"

bool tz_join(char *out, size_t size, const char *const *texts)
{
    size_t at = 0, length;

    for (; *texts; texts++, at += length) {
        length = strlen(*texts);
        if (at + length >= size)
            return false;
        memcpy(out + at, *texts, length + 1);
    }
    return true;
}

size_t tz_put_number(char *out, uint64_t value, unsigned base)
{
    char digits[24];
    size_t n = 0, length = 0;

    do
        digits[n++] = "0123456789abcdef"[value % base];
    while (value /= base);
    while (n)
        out[length++] = digits[--n];
    out[length] = '\0';
    return length;
}

uint64_t tz_read_number(const char **text, unsigned base)
{
    const char *from = *text;

    while (**text >= '0' && **text < (char)('0' + base))
        ++*text;
    return tz_number_of(from, (size_t)(*text - from), base);
}

void tz_fd_link(int fd, char out[TZ_FD_LINK_MAX])
{
    static const char directory[] = "/proc/self/fd/";

    memcpy(out, directory, sizeof directory);
    tz_put_number(out + sizeof directory - 1, (unsigned)fd, 10);
}

size_t tz_fd_path(int fd, char *out)
{
    char link[TZ_FD_LINK_MAX];
    ssize_t got;

    tz_fd_link(fd, link);
    got = tz_readlink(link, out, TZ_PATH_MAX);
    if (got <= 0 || got >= TZ_PATH_MAX || out[0] != '/')
        return 0;
    out[got] = '\0';
    return (size_t)got;
}
