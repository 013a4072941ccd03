/* Writes, counted in full mode. In light mode each of these is one test and a jump to the real function. */
#include "base/real.h"
#include "process/files.h"
#include "process/state.h"

static inline struct tz_file *counted(int fd)
{
    return tz_depth || tz_likely(!tz_files_get(fd)) ? NULL : tz_files_hold(fd);
}

/* At the file position, which moves on. */
static ssize_t wrote(int fd, ssize_t done)
{
    struct tz_file *file = done > 0 ? counted(fd) : NULL;

    if (file) {
        tz_file_wrote(file, __atomic_fetch_add(&file->position, (uint64_t)done, __ATOMIC_RELAXED), (uint64_t)done);
        tz_file_put(file);
    }
    return done;
}

static ssize_t wrote_at(int fd, ssize_t done, off_t offset)
{
    struct tz_file *file = done > 0 ? counted(fd) : NULL;

    if (file) {
        tz_file_wrote(file, (uint64_t)offset, (uint64_t)done);
        tz_file_put(file);
    }
    return done;
}

static off_t moved(int fd, off_t at)
{
    struct tz_file *file = at >= 0 ? counted(fd) : NULL;

    if (file) {
        __atomic_store_n(&file->position, (uint64_t)at, __ATOMIC_RELAXED);
        tz_file_put(file);
    }
    return at;
}

/* `result` is the call's; the descriptor's file is looked up after it, for the kernel may keep it waiting. */
#define COUNTED(type, name, parameters, arguments, counting)                                                           \
    TZ_EXPORT type name parameters                                                                                     \
    {                                                                                                                  \
        type result;                                                                                                   \
                                                                                                                       \
        if (tz_likely(!tz_relaxed(&tz_counting)))                                                                      \
            return REAL(name) arguments;                                                                               \
        result = REAL(name) arguments;                                                                                 \
        return counting;                                                                                               \
    }

/* Offset -1 stands for the file position. */
#define AT_OR_ON (offset == -1 ? wrote(fd, result) : wrote_at(fd, result, offset))

COUNTED(ssize_t, write, (int fd, const void *data, size_t count), (fd, data, count), wrote(fd, result))
COUNTED(ssize_t, writev, (int fd, const struct iovec *vectors, int count), (fd, vectors, count), wrote(fd, result))
COUNTED(ssize_t, pwrite, (int fd, const void *data, size_t count, off_t offset), (fd, data, count, offset),
        wrote_at(fd, result, offset))
COUNTED(ssize_t, pwrite64, (int fd, const void *data, size_t count, off64_t offset), (fd, data, count, offset),
        wrote_at(fd, result, offset))
COUNTED(ssize_t, pwritev, (int fd, const struct iovec *vectors, int count, off_t offset), (fd, vectors, count, offset),
        wrote_at(fd, result, offset))
COUNTED(ssize_t, pwritev64, (int fd, const struct iovec *vectors, int count, off64_t offset),
        (fd, vectors, count, offset), wrote_at(fd, result, offset))
COUNTED(ssize_t, pwritev2, (int fd, const struct iovec *vectors, int count, off_t offset, int flags),
        (fd, vectors, count, offset, flags), AT_OR_ON)
COUNTED(ssize_t, pwritev64v2, (int fd, const struct iovec *vectors, int count, off64_t offset, int flags),
        (fd, vectors, count, offset, flags), AT_OR_ON)
COUNTED(off_t, lseek, (int fd, off_t offset, int whence), (fd, offset, whence), moved(fd, result))
COUNTED(off64_t, lseek64, (int fd, off64_t offset, int whence), (fd, offset, whence), moved(fd, result))
