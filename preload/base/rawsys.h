/*
 * System calls made past libc: they are seen by no other preloaded library, need no libc version, are no
 * cancellation points, and here return -1 with errno as their libc counterparts do.
 */
#pragma once

#include "tz.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct tz_stat {
    uint64_t dev, ino, size;
    uint32_t mode, uid, links;
    int64_t changed_s, born_s; /* unknown: 0 */
};

static inline int tz_sys_open(const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Only where no symbolic link is on the way (ELOOP). ENOSYS: this kernel cannot tell. */
int tz_sys_open_straight(const char *path, int flags);

static inline int tz_sys_close(int fd)
{
    return (int)syscall(SYS_close, fd);
}

/* On Lustre this asks every OST of the file: see tz_look. */
int tz_fstat(int fd, struct tz_stat *out);

/*
 * What this client knows by itself, AT_STATX_DONT_SYNC: nothing is asked of a server. The size is at least what
 * this client has written. Kernels before 4.11, and sandboxes that know no statx, ask after all.
 */
int tz_look(int fd, struct tz_stat *out);

/* How far this process may reach into a file, INT64_MAX for any: beyond it the kernel would send SIGXFSZ. */
static inline uint64_t tz_size_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit))
        return 0;
    return limit.rlim_cur == RLIM_INFINITY ? INT64_MAX : limit.rlim_cur;
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
