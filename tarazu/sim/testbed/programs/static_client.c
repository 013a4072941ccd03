/* The testbed's kernel client inside of a statically linked program (-Wl,--wrap): no library can be preloaded into such
 * a one, so it escapes tarazu as on a real Lustre, and yet the emulated MDS makes its files as it does for all others.
 */
#include "../tb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

int __real_open(const char *path, int flags, ...);
int __real_close(int fd);
int __real_mkdir(const char *path, mode_t mode);
ssize_t __real_write(int fd, const void *data, size_t size);

int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode = 0;
    int fd, rc;

    va_start(arguments, flags);
    if (flags & O_CREAT)
        mode = va_arg(arguments, mode_t);
    va_end(arguments);
    fd = __real_open(path, flags, mode);
    rc = fd < 0 ? 0 : fd_opened(fd, flags, false);
    if (rc == 0)
        return fd;
    unlink(path);
    __real_close(fd);
    errno = -rc;
    return -1;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    struct tb_making making;
    int rc = tb_attach() ? dir_begin(&making, AT_FDCWD, path, false) : 1;

    if (rc > 0)
        return __real_mkdir(path, mode);
    if (rc < 0) {
        errno = -rc;
        return -1;
    }
    rc = __real_mkdir(path, mode);
    dir_end(&making, AT_FDCWD, path, rc == 0);
    return rc;
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    struct stat st;
    int rc = 0;

    if (fd_managed(fd, &st))
        rc = fd_cover(fd, &st, (uint64_t)lseek(fd, 0, SEEK_CUR) + size, false);
    if (rc == 0)
        return __real_write(fd, data, size);
    errno = -rc;
    return -1;
}

int __wrap_close(int fd)
{
    fd_closing(fd);
    return __real_close(fd);
}
