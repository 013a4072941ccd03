/* Where the kernel's links /proc/self/fd/N lead. */
#include "base/fd_path.h"

#include "base/number.h"
#include "base/rawsys.h"

size_t tz_fd_path(int fd, char *out)
{
    char link[32] = "/proc/self/fd/";
    size_t length = sizeof "/proc/self/fd/" - 1;
    ssize_t got;

    link[length + tz_put_number(link + length, (unsigned)fd, 10)] = '\0';
    got = tz_readlink(link, out, TZ_PATH_MAX);
    if (got <= 0 || got >= TZ_PATH_MAX || out[0] != '/')
        return 0;
    out[got] = '\0';
    return (size_t)got;
}
