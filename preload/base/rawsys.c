/* Looking at files. The kernel's answers are large: their room on the stack is given back at once. */
#include "base/rawsys.h"

/* openat2 came with Linux 5.6; older headers lack it. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

int tz_sys_open_straight(const char *path, int flags)
{
    static uint32_t unknown; /* atomic: this kernel has no such call */
    enum { NO_SYMLINKS = 0x04 };
    struct {
        uint64_t flags, mode, resolve;
    } how = {.flags = (uint64_t)flags, .resolve = NO_SYMLINKS};
    int fd;

    if (tz_load(&unknown)) {
        errno = ENOSYS;
        return -1;
    }
    fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (fd < 0 && errno == ENOSYS)
        tz_store(&unknown, 1);
    return fd;
}

/* glibc before 2.33 has no fstat symbol to bind to. */
int tz_fstat(int fd, struct tz_stat *out)
{
    struct stat st;

    if (syscall(SYS_fstat, fd, &st))
        return -1;
    *out = (struct tz_stat){.dev = st.st_dev,
                            .ino = st.st_ino,
                            .size = (uint64_t)st.st_size,
                            .mode = st.st_mode,
                            .uid = st.st_uid,
                            .links = (uint32_t)st.st_nlink,
                            .changed_s = st.st_ctime};
    return 0;
}

/* The kernel's struct statx; libc headers before 2.28 have none. */
struct tz_statx {
    uint32_t mask, block_size;
    uint64_t attributes;
    uint32_t links, uid, gid;
    uint16_t mode, pad;
    uint64_t ino, size, blocks, attributes_mask;
    struct {
        int64_t seconds;
        uint32_t nanoseconds, pad;
    } accessed, born, changed, modified;
    uint32_t device_major, device_minor, dev_major, dev_minor;
    uint64_t rest[14];
};

int tz_look(int fd, struct tz_stat *out)
{
#ifdef SYS_statx
    enum { EMPTY_PATH = 0x1000, DONT_SYNC = 0x4000, BASIC = 0x7ff, BORN = 0x800 };
    struct tz_statx st;

    memset(&st, 0, sizeof st);
    if (syscall(SYS_statx, fd, "", EMPTY_PATH | DONT_SYNC, BASIC | BORN, &st) == 0) {
        *out = (struct tz_stat){.dev = makedev(st.dev_major, st.dev_minor),
                                .ino = st.ino,
                                .size = st.size,
                                .mode = st.mode,
                                .uid = st.uid,
                                .links = st.links,
                                .changed_s = st.changed.seconds,
                                .born_s = st.mask & BORN ? st.born.seconds : 0};
        return 0;
    }
#endif
    return tz_fstat(fd, out);
}
