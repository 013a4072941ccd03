/* Opening and closing: new files get their layout here. */
#include "tb.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The MDS makes a file with its layout in one step: nobody who creates or opens it to write meets it in between.
 * Nothing to wait for is opened under the lock.
 */
static bool open_begins(int dirfd, const char *path, int flags, bool *fresh)
{
    int saved = errno;
    struct stat st;
    bool alone;

    *fresh = false;
    if ((!(flags & O_CREAT) && (flags & O_ACCMODE) == O_RDONLY) || !path_in_mount(dirfd, path, true))
        return false;
    alone = syscall(SYS_newfstatat, dirfd, path, &st, 0) != 0 || S_ISREG(st.st_mode);
    if (alone) {
        tb_lock();
        *fresh = syscall(SYS_newfstatat, dirfd, path, &st, 0) != 0;
    }
    errno = saved;
    return alone;
}

/* `opened`: it succeeded; `fresh`: and so made the file. */
static void open_ends(bool began, bool opened, bool fresh, uint32_t mdt)
{
    if (began)
        tb_unlock();
    if (opened && fresh)
        mdt_count(mdt, MD_MKNOD, 1);
    if (opened)
        mdt_count(mdt, MD_OPEN, 1);
}

/* Where the name lies; TB_MAX_MDTS outside of the mount. What is opened waits for an MDT that is away. */
static int open_reaches(int dirfd, const char *path, uint32_t *mdt)
{
    *mdt = TB_MAX_MDTS;
    if (!tb_attach() || !path_in_mount(dirfd, path, true))
        return 0;
    *mdt = place_of_path(dirfd, path);
    return mdt_wait(*mdt);
}

/*
 * A file that is only named: its attributes are asked for. Opened afterwards it costs another request, as counted on a
 * real Lustre; taken to be the lock that came with them and is given up.
 */
static int name_at(int dirfd, const char *path, int flags, mode_t mode)
{
    int fd = NEXT(openat64)(dirfd, path, flags, mode);
    struct stat st;

    if (fd >= 0 && fd_in_mount(fd, &st) && S_ISREG(st.st_mode)) {
        tb_request(TO_MDS_GETATTR, 1);
        tb_request(TO_MDS_CANCEL, 1);
    }
    return fd;
}

static int open_at(int dirfd, const char *path, int flags, mode_t mode)
{
    bool delayed = (flags & O_LOV_DELAY_CREATE) == O_LOV_DELAY_CREATE, began, fresh;
    struct stat st;
    uint32_t mdt;
    int fd, rc;

    if (!tb_attach())
        return NEXT(openat64)(dirfd, path, flags, mode);
    if (flags & O_PATH)
        return name_at(dirfd, path, flags, mode);
    if ((flags & O_TMPFILE) == O_TMPFILE && path_in_mount(dirfd, path, false)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (delayed && path_in_mount(dirfd, path, true))
        flags &= ~FASYNC; /* Lustre consumes it; elsewhere it stays in F_GETFL */
    rc = open_reaches(dirfd, path, &mdt);
    if (rc) {
        errno = -rc;
        return -1;
    }
    if (mdt < TB_MAX_MDTS)
        tb_request(TO_MDS_OPEN, 1);
    began = open_begins(dirfd, path, flags, &fresh);
    fd = NEXT(openat64)(dirfd, path, flags, mode);
    rc = fd < 0 ? 0 : fd_opened(fd, flags, delayed);
    if (rc) { /* the MDS found no OST: then the file was not created either */
        if (fresh && fstat(fd, &st) == 0 && st.st_size == 0 && st.st_nlink == 1)
            NEXT(unlinkat)(dirfd, path, 0);
        NEXT(close)(fd);
        errno = -rc;
        fd = -1;
    }
    if (fd >= 0 && mdt == TB_MAX_MDTS && fd_in_mount(fd, &st)) { /* by a link in /proc */
        mdt = place_of_fd(fd);
        tb_request(TO_MDS_OPEN, 1);
    }
    open_ends(began, fd >= 0, fresh, mdt);
    if (began && fd >= 0 && !fresh && (flags & O_ACCMODE) != O_RDONLY)
        tb_request(TO_MDS_GETXATTR, 1); /* the privileges of a file that was there, at the first write */
    return fd;
}

static mode_t mode_argument(int flags, va_list arguments)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPEN_HOOK(name)                                                                                                \
    PUBLIC int name(const char *path, int flags, ...)                                                                  \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        mode_t mode;                                                                                                   \
                                                                                                                       \
        va_start(arguments, flags);                                                                                    \
        mode = mode_argument(flags, arguments);                                                                        \
        va_end(arguments);                                                                                             \
        return open_at(AT_FDCWD, path, flags, mode);                                                                   \
    }
#define OPENAT_HOOK(name)                                                                                              \
    PUBLIC int name(int dirfd, const char *path, int flags, ...)                                                       \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        mode_t mode;                                                                                                   \
                                                                                                                       \
        va_start(arguments, flags);                                                                                    \
        mode = mode_argument(flags, arguments);                                                                        \
        va_end(arguments);                                                                                             \
        return open_at(dirfd, path, flags, mode);                                                                      \
    }

OPEN_HOOK(open)
OPEN_HOOK(open64)
OPENAT_HOOK(openat)
OPENAT_HOOK(openat64)

PUBLIC int creat(const char *path, mode_t mode)
{
    return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

PUBLIC int creat64(const char *path, mode_t mode)
{
    return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

/* The fortified forms never create. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

PUBLIC int __open_2(const char *path, int flags)
{
    return flags & O_CREAT ? NEXT(__open_2)(path, flags) : open_at(AT_FDCWD, path, flags, 0);
}

PUBLIC int __open64_2(const char *path, int flags)
{
    return flags & O_CREAT ? NEXT(__open64_2)(path, flags) : open_at(AT_FDCWD, path, flags, 0);
}

PUBLIC int __openat_2(int dirfd, const char *path, int flags)
{
    return flags & O_CREAT ? NEXT(__openat_2)(dirfd, path, flags) : open_at(dirfd, path, flags, 0);
}

PUBLIC int __openat64_2(int dirfd, const char *path, int flags)
{
    return flags & O_CREAT ? NEXT(__openat64_2)(dirfd, path, flags) : open_at(dirfd, path, flags, 0);
}

static int temporary(char *template, int suffix, int flags)
{
    int rc, fd = NEXT(mkostemps64)(template, suffix, flags);

    if (fd < 0)
        return fd;
    rc = fd_opened(fd, O_RDWR | O_CREAT, false);
    if (rc == 0) {
        if (tb_attach() && path_in_mount(AT_FDCWD, template, true)) {
            mdt_count(place_of_path(AT_FDCWD, template), MD_MKNOD, 1);
            mdt_count(place_of_path(AT_FDCWD, template), MD_OPEN, 1);
        }
        return fd;
    }
    NEXT(unlinkat)(AT_FDCWD, template, 0);
    NEXT(close)(fd);
    errno = -rc;
    return -1;
}

PUBLIC int mkstemp(char *template)
{
    return temporary(template, 0, 0);
}
PUBLIC int mkstemp64(char *template)
{
    return temporary(template, 0, 0);
}
PUBLIC int mkostemp(char *template, int flags)
{
    return temporary(template, 0, flags);
}
PUBLIC int mkostemp64(char *template, int flags)
{
    return temporary(template, 0, flags);
}
PUBLIC int mkstemps(char *template, int suffix)
{
    return temporary(template, suffix, 0);
}
PUBLIC int mkstemps64(char *template, int suffix)
{
    return temporary(template, suffix, 0);
}
PUBLIC int mkostemps(char *template, int suffix, int flags)
{
    return temporary(template, suffix, flags);
}
PUBLIC int mkostemps64(char *template, int suffix, int flags)
{
    return temporary(template, suffix, flags);
}

static int flags_of(const char *mode)
{
    int flags = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;

    return mode[0] == 'r' ? flags : flags | O_CREAT;
}

static FILE *opened(FILE *stream, const char *mode)
{
    int rc = stream ? fd_opened(fileno(stream), flags_of(mode), false) : 0;

    if (rc == 0)
        return stream;
    NEXT(fclose)(stream);
    errno = -rc;
    return NULL;
}

/*
 * Before libc writes what the stream holds and closes it; 0 or the errno that the write meets. Nothing is written here:
 * the program is to see what becomes of it.
 */
static int stream_closing(FILE *stream)
{
    size_t held = __fpending(stream);
    int fd = fileno(stream), rc = 0;
    struct stat st;

    if (!tb_attach() || fd < 0 || !fd_managed(fd, &st))
        return 0;
    if (held) {
        off_t at = syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND ? st.st_size : syscall(SYS_lseek, fd, 0, SEEK_CUR);

        rc = -fd_cover(fd, &st, (uint64_t)at + held, false);
    }
    if (rc)
        __fpurge(stream);
    fd_closing(fd);
    return rc;
}

#define FOPEN_HOOK(name, parameters, before, arguments)                                                                \
    PUBLIC FILE *name parameters                                                                                       \
    {                                                                                                                  \
        FILE *made;                                                                                                    \
        bool began, fresh = false;                                                                                     \
        uint32_t mdt = TB_MAX_MDTS;                                                                                    \
        int rc;                                                                                                        \
                                                                                                                       \
        before;                                                                                                        \
        rc = path ? open_reaches(AT_FDCWD, path, &mdt) : 0;                                                            \
        if (rc) {                                                                                                      \
            errno = -rc;                                                                                               \
            return NULL;                                                                                               \
        }                                                                                                              \
        began = path && open_begins(AT_FDCWD, path, flags_of(mode), &fresh);                                           \
        made = opened(NEXT(name) arguments, mode);                                                                     \
        open_ends(began, made, fresh, mdt);                                                                            \
        return made;                                                                                                   \
    }

FOPEN_HOOK(fopen, (const char *path, const char *mode), , (path, mode))
FOPEN_HOOK(fopen64, (const char *path, const char *mode), , (path, mode))
FOPEN_HOOK(freopen, (const char *path, const char *mode, FILE *stream), stream_closing(stream), (path, mode, stream))
FOPEN_HOOK(freopen64, (const char *path, const char *mode, FILE *stream), stream_closing(stream), (path, mode, stream))

static void count_close(int fd)
{
    struct stat st;

    if (fd_managed(fd, &st) && !fd_moved(fd, &st, false) && !(syscall(SYS_fcntl, fd, F_GETFL) & O_PATH)) {
        tb_request(TO_MDS_CLOSE, 1);
        mdt_count(place_of_fd(fd), MD_CLOSE, 1);
    }
    fd_closing(fd);
}

PUBLIC int close(int fd)
{
    count_close(fd);
    return NEXT(close)(fd);
}

/* A file that is moved is closed but once. Not dup2, by which shells put aside and bring back what stays open. */
PUBLIC int dup3(int from, int to, int flags)
{
    struct stat st;

    if (from != to)
        count_close(to);
    if (fd_managed(from, &st))
        fd_moved(from, &st, true);
    return NEXT(dup3)(from, to, flags);
}

PUBLIC int fclose(FILE *stream)
{
    int refused, result, fd = stream ? fileno(stream) : -1;
    struct stat st;

    if (fd_managed(fd, &st))
        mdt_count(place_of_fd(fd), MD_CLOSE, 1);
    refused = stream_closing(stream);
    result = NEXT(fclose)(stream);

    if (refused)
        errno = refused;
    return refused ? EOF : result;
}
