/* The file system as a whole: statfs says Lustre, and the host is the emulated client. */
#include "tb.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BLOCK 4096u
#define INODES_PER_OST (1u << 20)

struct sums {
    uint64_t blocks, free, avail, files;
};

static struct sums sums(void)
{
    struct sums sum = {0};

    for (unsigned i = 0; i < tb_state->n_osts; i++) {
        const struct tb_ost *ost = &tb_state->ost[i];

        if (ost->flags & OST_INACTIVE)
            continue;
        sum.blocks += ost->total / BLOCK;
        sum.free += tb_ost_free(ost) / BLOCK;
        sum.avail += tb_ost_avail(ost) / BLOCK;
        sum.files += INODES_PER_OST;
    }
    return sum;
}

static bool fd_ours(int fd)
{
    struct stat st;

    return fd_in_mount(fd, &st);
}

static bool path_ours(const char *path)
{
    return path_in_mount(AT_FDCWD, path, false);
}

#define FILL(buffer)                                                                                                   \
    do {                                                                                                               \
        struct sums sum_ = sums();                                                                                     \
                                                                                                                       \
        (buffer)->f_bsize = (buffer)->f_frsize = BLOCK;                                                                \
        (buffer)->f_blocks = sum_.blocks;                                                                              \
        (buffer)->f_bfree = sum_.free;                                                                                 \
        (buffer)->f_bavail = sum_.avail;                                                                               \
        (buffer)->f_files = (buffer)->f_ffree = sum_.files;                                                            \
    } while (0)

#define STATFS_HOOK(name, type, first, ours)                                                                           \
    PUBLIC int name(first, struct type *buffer)                                                                        \
    {                                                                                                                  \
        int rc = NEXT(name)(target, buffer);                                                                           \
                                                                                                                       \
        if (rc == 0 && ours(target)) {                                                                                 \
            FILL(buffer);                                                                                              \
            buffer->f_type = LUSTRE_SUPER_MAGIC;                                                                       \
        }                                                                                                              \
        return rc;                                                                                                     \
    }
#define STATVFS_HOOK(name, type, first, ours)                                                                          \
    PUBLIC int name(first, struct type *buffer)                                                                        \
    {                                                                                                                  \
        int rc = NEXT(name)(target, buffer);                                                                           \
                                                                                                                       \
        if (rc == 0 && ours(target))                                                                                   \
            FILL(buffer);                                                                                              \
        return rc;                                                                                                     \
    }

STATFS_HOOK(statfs, statfs, const char *target, path_ours)
STATFS_HOOK(statfs64, statfs64, const char *target, path_ours)
STATFS_HOOK(fstatfs, statfs, int target, fd_ours)
STATFS_HOOK(fstatfs64, statfs64, int target, fd_ours)
STATVFS_HOOK(statvfs, statvfs, const char *target, path_ours)
STATVFS_HOOK(statvfs64, statvfs64, const char *target, path_ours)
STATVFS_HOOK(fstatvfs, statvfs, int target, fd_ours)
STATVFS_HOOK(fstatvfs64, statvfs64, int target, fd_ours)

static const char *host(void)
{
    const char *name = tb_attach() ? getenv("TESTBED_HOST") : NULL;

    return name && *name ? name : NULL;
}

PUBLIC int gethostname(char *name, size_t size)
{
    const char *ours = host();

    if (!ours)
        return NEXT(gethostname)(name, size);
    if (strlen(ours) >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(name, ours);
    return 0;
}

PUBLIC int uname(struct utsname *buffer)
{
    const char *ours = host();
    int rc = NEXT(uname)(buffer);

    if (rc == 0 && ours) {
        memset(buffer->nodename, 0, sizeof(buffer->nodename));
        strncpy(buffer->nodename, ours, sizeof(buffer->nodename) - 1);
    }
    return rc;
}
