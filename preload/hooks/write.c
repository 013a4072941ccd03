/* Writes, counted in full mode. In light mode each of these is one test and a jump to the real function. */
#include "base/real.h"
#include "process/files.h"
#include "process/state.h"

#define UNLESS_COUNTING(call)                                                                                          \
    do {                                                                                                               \
        if (tz_likely(!tz_relaxed(&tz_counting)))                                                                      \
            return call;                                                                                               \
    } while (0)

static inline struct tz_file *counted(int fd)
{
    return tz_depth ? NULL : tz_files_get(fd);
}

/* At the file position, which moves on. */
static ssize_t wrote(struct tz_file *file, ssize_t done)
{
    if (file && done > 0)
        tz_file_wrote(file, __atomic_fetch_add(&file->position, (uint64_t)done, __ATOMIC_RELAXED), (uint64_t)done);
    return done;
}

static ssize_t wrote_at(struct tz_file *file, ssize_t done, off_t offset)
{
    if (file && done > 0)
        tz_file_wrote(file, (uint64_t)offset, (uint64_t)done);
    return done;
}

TZ_EXPORT ssize_t write(int fd, const void *data, size_t count)
{
    UNLESS_COUNTING(REAL(write)(fd, data, count));
    return wrote(counted(fd), REAL(write)(fd, data, count));
}

TZ_EXPORT ssize_t writev(int fd, const struct iovec *vectors, int count)
{
    UNLESS_COUNTING(REAL(writev)(fd, vectors, count));
    return wrote(counted(fd), REAL(writev)(fd, vectors, count));
}

TZ_EXPORT ssize_t pwrite(int fd, const void *data, size_t count, off_t offset)
{
    UNLESS_COUNTING(REAL(pwrite)(fd, data, count, offset));
    return wrote_at(counted(fd), REAL(pwrite)(fd, data, count, offset), offset);
}

TZ_EXPORT ssize_t pwrite64(int fd, const void *data, size_t count, off64_t offset)
{
    UNLESS_COUNTING(REAL(pwrite64)(fd, data, count, offset));
    return wrote_at(counted(fd), REAL(pwrite64)(fd, data, count, offset), offset);
}

TZ_EXPORT ssize_t pwritev(int fd, const struct iovec *vectors, int count, off_t offset)
{
    UNLESS_COUNTING(REAL(pwritev)(fd, vectors, count, offset));
    return wrote_at(counted(fd), REAL(pwritev)(fd, vectors, count, offset), offset);
}

TZ_EXPORT ssize_t pwritev64(int fd, const struct iovec *vectors, int count, off64_t offset)
{
    UNLESS_COUNTING(REAL(pwritev64)(fd, vectors, count, offset));
    return wrote_at(counted(fd), REAL(pwritev64)(fd, vectors, count, offset), offset);
}

/* Offset -1 stands for the file position. */
TZ_EXPORT ssize_t pwritev2(int fd, const struct iovec *vectors, int count, off_t offset, int flags)
{
    ssize_t done;

    UNLESS_COUNTING(REAL(pwritev2)(fd, vectors, count, offset, flags));
    done = REAL(pwritev2)(fd, vectors, count, offset, flags);
    return offset == -1 ? wrote(counted(fd), done) : wrote_at(counted(fd), done, offset);
}

TZ_EXPORT ssize_t pwritev64v2(int fd, const struct iovec *vectors, int count, off64_t offset, int flags)
{
    ssize_t done;

    UNLESS_COUNTING(REAL(pwritev64v2)(fd, vectors, count, offset, flags));
    done = REAL(pwritev64v2)(fd, vectors, count, offset, flags);
    return offset == -1 ? wrote(counted(fd), done) : wrote_at(counted(fd), done, offset);
}

static off_t moved(struct tz_file *file, off_t at)
{
    if (file && at >= 0)
        __atomic_store_n(&file->position, (uint64_t)at, __ATOMIC_RELAXED);
    return at;
}

TZ_EXPORT off_t lseek(int fd, off_t offset, int whence)
{
    UNLESS_COUNTING(REAL(lseek)(fd, offset, whence));
    return moved(counted(fd), REAL(lseek)(fd, offset, whence));
}

TZ_EXPORT off64_t lseek64(int fd, off64_t offset, int whence)
{
    UNLESS_COUNTING(REAL(lseek64)(fd, offset, whence));
    return moved(counted(fd), REAL(lseek64)(fd, offset, whence));
}
