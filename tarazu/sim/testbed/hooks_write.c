/* Writing: components are instantiated as data reach them; sparse data only grow the file. */
#include "tb.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define HERE (-1) /* at the descriptor's own position */
#define PASS (-2) /* not ours, or to be stored for real: call the next function */

/* Under the lock: two processes that extend one file must not shrink it. */
static ssize_t grow(int fd, off_t offset, uint64_t length, bool append)
{
    struct stat st;
    off_t end;
    int rc = 0;

    tb_lock();
    if (fstat(fd, &st) != 0) {
        tb_unlock();
        return -1;
    }
    if (append)
        offset = st.st_size;
    end = offset + (off_t)length;
    if (end > st.st_size)
        rc = (int)syscall(SYS_ftruncate, fd, end);
    tb_unlock();
    return rc ? -1 : (ssize_t)length;
}

static ssize_t put(int fd, off_t offset, uint64_t length)
{
    bool here = offset == HERE, append;
    struct stat st;
    ssize_t written;
    int flags, rc;

    if (length == 0 || !fd_managed(fd, &st))
        return PASS;
    flags = (int)syscall(SYS_fcntl, fd, F_GETFL);
    if ((flags & O_ACCMODE) == O_RDONLY || offset < HERE)
        return PASS; /* the kernel refuses it */
    append = flags & O_APPEND;
    if (append)
        offset = st.st_size;
    else if (here)
        offset = syscall(SYS_lseek, fd, 0, SEEK_CUR);
    if (length > (uint64_t)LLONG_MAX - (uint64_t)offset)
        return PASS;
    rc = fd_cover(fd, &st, (uint64_t)offset + length, false);
    if (rc) {
        errno = -rc;
        return -1;
    }
    fd_wait(fd, offset, (uint64_t)offset + length);
    disk_wait(fd, offset, (uint64_t)offset + length);
    if (!tb_state->sparse || (uint64_t)offset + length <= tb_state->keep_bytes)
        return PASS;
    written = grow(fd, offset, length, append);
    if (written > 0 && here)
        syscall(SYS_lseek, fd, append ? 0 : offset + written, append ? SEEK_END : SEEK_SET);
    return written;
}

static uint64_t total(const struct iovec *vector, int count)
{
    uint64_t length = 0;

    for (int i = 0; i < count; i++)
        length += vector[i].iov_len;
    return length;
}

#define HOOK(hook, parameters, arguments, offset, length)                                                              \
    PUBLIC ssize_t hook parameters                                                                                     \
    {                                                                                                                  \
        ssize_t done = put(fd, offset, length);                                                                        \
                                                                                                                       \
        return done == PASS ? NEXT(hook) arguments : done;                                                             \
    }

HOOK(write, (int fd, const void *data, size_t size), (fd, data, size), HERE, size)
HOOK(pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at), at < 0 ? PASS : at, size)
HOOK(pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), at < 0 ? PASS : at, size)
HOOK(writev, (int fd, const struct iovec *vector, int count), (fd, vector, count), HERE, total(vector, count))
HOOK(pwritev, (int fd, const struct iovec *vector, int count, off_t at), (fd, vector, count, at), at < 0 ? PASS : at,
     total(vector, count))
HOOK(pwritev64, (int fd, const struct iovec *vector, int count, off64_t at), (fd, vector, count, at),
     at < 0 ? PASS : at, total(vector, count))
HOOK(pwritev2, (int fd, const struct iovec *vector, int count, off_t at, int flags), (fd, vector, count, at, flags), at,
     total(vector, count))
HOOK(pwritev64v2, (int fd, const struct iovec *vector, int count, off64_t at, int flags),
     (fd, vector, count, at, flags), at, total(vector, count))

/* How much of `length` a regular source file still holds; PASS when the source is something else. */
static ssize_t available(int in, const off64_t *in_offset, size_t length)
{
    struct stat st;
    off_t at;

    if (fstat(in, &st) != 0 || !S_ISREG(st.st_mode))
        return PASS;
    at = in_offset ? *in_offset : syscall(SYS_lseek, in, 0, SEEK_CUR);
    if (at < 0 || at >= st.st_size)
        return 0;
    return (uint64_t)(st.st_size - at) < length ? (size_t)(st.st_size - at) : length;
}

static ssize_t copy(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t length)
{
    struct stat st;
    ssize_t count, done;

    if (!fd_managed(out, &st))
        return PASS;
    count = available(in, in_offset, length);
    if (count <= 0)
        return PASS;
    done = put(out, out_offset ? *out_offset : HERE, count);
    if (done > 0) {
        if (in_offset)
            *in_offset += done;
        else
            syscall(SYS_lseek, in, done, SEEK_CUR);
        if (out_offset)
            *out_offset += done;
    }
    return done;
}

PUBLIC ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t length, unsigned flags)
{
    ssize_t done = copy(in, in_offset, out, out_offset, length);

    return done == PASS ? NEXT(copy_file_range)(in, in_offset, out, out_offset, length, flags) : done;
}

PUBLIC ssize_t sendfile(int out, int in, off_t *offset, size_t length)
{
    ssize_t done = copy(in, offset, out, NULL, length);

    return done == PASS ? NEXT(sendfile)(out, in, offset, length) : done;
}

PUBLIC ssize_t sendfile64(int out, int in, off64_t *offset, size_t length)
{
    ssize_t done = copy(in, offset, out, NULL, length);

    return done == PASS ? NEXT(sendfile64)(out, in, offset, length) : done;
}

static int cover_size(int fd, off_t size, bool truncating)
{
    struct stat st;
    int rc;

    if (size <= 0 || !fd_managed(fd, &st))
        return 0;
    rc = fd_cover(fd, &st, size, truncating);
    if (rc)
        errno = -rc;
    else if (truncating)
        fd_wait(fd, 0, LUSTRE_EOF);
    return rc ? -1 : 0;
}

PUBLIC int ftruncate(int fd, off_t size)
{
    struct stat st;

    if (fd_managed(fd, &st))
        tb_request(TO_OST, 1);
    return cover_size(fd, size, true) ? -1 : NEXT(ftruncate)(fd, size);
}
PUBLIC int ftruncate64(int fd, off64_t size)
{
    return cover_size(fd, size, true) ? -1 : NEXT(ftruncate64)(fd, size);
}

static int cover_path(const char *path, off_t size)
{
    int rc, fd = size > 0 && path_in_mount(AT_FDCWD, path, false) ? real_open(path, O_RDONLY | O_NONBLOCK, 0) : -1;

    if (fd < 0)
        return 0; /* not ours, or truncate itself says what is wrong */
    rc = cover_size(fd, size, true);
    real_close(fd);
    return rc;
}

PUBLIC int truncate(const char *path, off_t size)
{
    return cover_path(path, size) ? -1 : NEXT(truncate)(path, size);
}
PUBLIC int truncate64(const char *path, off64_t size)
{
    return cover_path(path, size) ? -1 : NEXT(truncate64)(path, size);
}

enum { OBJECT_MAX_TIB = 16 };

/*
 * 1 = done, 0 = call the next function, -1 = refused. As on Lustre: components up to the range get their objects where
 * the OSTs allow it, and the call succeeds also where they do not; what is punched beyond all data takes no space.
 */
static int allocate(int fd, int mode, off_t offset, off_t length)
{
    struct stat st;

    if (offset < 0 || length <= 0 || !fd_managed(fd, &st))
        return 0;
    if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (offset + length > st.st_size &&
        (uint64_t)(offset + length) >> 40 >= (uint64_t)OBJECT_MAX_TIB * layout_last_count(fd)) {
        errno = EFBIG;
        return -1;
    }
    if (cover_size(fd, offset + length - 1, true))
        return -1;
    tb_request(TO_OST, 2); /* a lock, and the call itself */
    if (mode & FALLOC_FL_PUNCH_HOLE)
        return offset >= st.st_size;
    if (!tb_state->sparse)
        return 0;
    if (!(mode & FALLOC_FL_KEEP_SIZE) && grow(fd, offset, length, false) < 0)
        return -1;
    return 1;
}

PUBLIC int fallocate(int fd, int mode, off_t offset, off_t length)
{
    int done = allocate(fd, mode, offset, length);

    return done ? (done > 0 ? 0 : -1) : NEXT(fallocate)(fd, mode, offset, length);
}

PUBLIC int fallocate64(int fd, int mode, off64_t offset, off64_t length)
{
    int done = allocate(fd, mode, offset, length);

    return done ? (done > 0 ? 0 : -1) : NEXT(fallocate64)(fd, mode, offset, length);
}

PUBLIC int posix_fallocate(int fd, off_t offset, off_t length)
{
    int saved = errno, done = allocate(fd, 0, offset, length), error = errno;

    errno = saved;
    return done ? (done > 0 ? 0 : error) : NEXT(posix_fallocate)(fd, offset, length);
}

PUBLIC int posix_fallocate64(int fd, off64_t offset, off64_t length)
{
    int saved = errno, done = allocate(fd, 0, offset, length), error = errno;

    errno = saved;
    return done ? (done > 0 ? 0 : error) : NEXT(posix_fallocate64)(fd, offset, length);
}
