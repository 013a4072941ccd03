/*
 * System calls made past libc: they are seen by no other preloaded library, need no libc version, are no
 * cancellation points, and here return -1 with errno as their libc counterparts do.
 */
#ifndef TZ_RAWSYS_H
#define TZ_RAWSYS_H

#include "tz.h"

#include <fcntl.h>
#include <sys/stat.h>

struct tz_stat {
    uint64_t dev, ino, size;
    uint32_t mode, uid;
};

static inline int tz_sys_open(const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static inline int tz_sys_close(int fd)
{
    return (int)syscall(SYS_close, fd);
}

/* glibc before 2.33 has no fstat symbol to bind to. */
static inline int tz_fstat(int fd, struct tz_stat *out)
{
    struct stat st;

    if (syscall(SYS_fstat, fd, &st))
        return -1;
    *out = (struct tz_stat){
        .dev = st.st_dev, .ino = st.st_ino, .size = (uint64_t)st.st_size, .mode = st.st_mode, .uid = st.st_uid};
    return 0;
}

static inline uint32_t tz_euid(void)
{
    return (uint32_t)syscall(SYS_geteuid);
}

static inline ssize_t tz_readlink(const char *path, char *buffer, size_t size)
{
    return syscall(SYS_readlinkat, AT_FDCWD, path, buffer, size);
}

static inline int tz_getpid(void)
{
    return (int)syscall(SYS_getpid);
}

#endif
