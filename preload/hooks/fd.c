/* Descriptors: closing and duplicating them. */
#include "base/real.h"
#include "life/start.h"
#include "record/recorder.h"

#include <stdarg.h>

TZ_EXPORT int close(int fd)
{
    struct tz_closing closing;
    int saved, result;

    if (tz_likely(!tz_files_get(fd)) || !tz_enter())
        return REAL(close)(fd);
    saved = errno;
    tz_record_closing(fd, NULL, &closing);
    errno = saved;
    result = REAL(close)(fd);
    saved = errno;
    tz_record_closed(&closing, true);
    tz_leave();
    errno = saved;
    return result;
}

/* The descriptors are about to be closed one and all. */
static void forget_range(unsigned first, unsigned last)
{
    int saved = errno;

    if (first > last || !tz_enter())
        return;
    tz_files_each(first, last, tz_record_close);
    tz_leave();
    errno = saved;
}

/* Apart, since libc's header says that dirfd is never given NULL: programs do. */
static int descriptor_of(DIR *directory)
{
    return directory ? dirfd(directory) : -1;
}

TZ_EXPORT int closedir(DIR *directory)
{
    int saved = errno, fd = descriptor_of(directory);

    errno = saved;
    if (fd >= 0 && tz_files_get(fd))
        forget_range((unsigned)fd, (unsigned)fd);
    return REAL(closedir)(directory);
}

/*
 * Under libc's own version and no other: a program that looks for the function finds libc's, or none where libc has
 * none, and one that is linked to it comes here.
 */
#define TZ_NEWER(function, symbol) __asm__(".symver " #function "," #symbol "@GLIBC_2.34")

TZ_NEWER(tz_close_range, close_range);
TZ_NEWER(tz_closefrom, closefrom);

TZ_EXPORT int tz_close_range(unsigned first, unsigned last, int flags)
{
    enum { CLOEXEC_ONLY = 4 };

    if (!(flags & CLOEXEC_ONLY))
        forget_range(first, last);
    return REAL(close_range)(first, last, flags);
}

TZ_EXPORT void tz_closefrom(int first)
{
    forget_range(first < 0 ? 0 : (unsigned)first, TZ_FDS_MAX - 1);
    REAL(closefrom)(first);
}

static void share(int from, int to)
{
    struct tz_file *file = tz_owner() ? tz_files_hold(from) : NULL;

    if (!file)
        return;
    if (!(file->flags & TZ_FILE_DIRECTORY))
        tz_files_share(to, file);
    tz_file_put(file);
}

static int duplicated(int from, int to)
{
    int saved = errno;

    if (to >= 0 && tz_files_get(from) && tz_enter()) {
        share(from, to);
        tz_leave();
    }
    errno = saved;
    return to;
}

TZ_EXPORT int dup(int fd)
{
    return duplicated(fd, REAL(dup)(fd));
}

/* `to` is closed by the call when it is open. */
static int hook_dup(int from, int to, int flags, bool three)
{
    struct tz_closing closing;
    bool followed = from != to && tz_files_get(to) && tz_files_get(to) != tz_files_get(from) && tz_enter();
    int saved = errno, result;

    if (followed)
        tz_record_closing(to, NULL, &closing);
    errno = saved;
    result = three ? REAL(dup3)(from, to, flags) : REAL(dup2)(from, to);
    saved = errno;
    if (followed) {
        if (result >= 0)
            tz_record_closed(&closing, true);
        else if (closing.file) { /* nothing was closed */
            tz_files_share(to, closing.file);
            tz_file_put(closing.file);
        }
        tz_leave();
    }
    errno = saved;
    if (from == to || result < 0)
        return result;
    if (tz_enter()) {
        if (tz_owner_quick())
            tz_files_replaced(to);
        tz_leave();
    }
    errno = saved;
    return duplicated(from, result);
}

TZ_EXPORT int dup2(int from, int to)
{
    return hook_dup(from, to, 0, false);
}

TZ_EXPORT int dup3(int from, int to, int flags)
{
    return hook_dup(from, to, flags, true);
}

#define FCNTL(real)                                                                                                    \
    va_list arguments;                                                                                                 \
    void *argument;                                                                                                    \
    int result;                                                                                                        \
                                                                                                                       \
    va_start(arguments, command);                                                                                      \
    argument = va_arg(arguments, void *);                                                                              \
    va_end(arguments);                                                                                                 \
    result = real(fd, command, argument);                                                                              \
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(fd, result) : result;

TZ_EXPORT int fcntl(int fd, int command, ...)
{
    FCNTL(REAL(fcntl))
}

/* libc has it since 2.28. */
static int real_fcntl64(int fd, int command, void *argument)
{
    int result, saved = errno;

    result = REAL(fcntl64)(fd, command, argument);
    if (result < 0 && errno == ENOSYS) {
        errno = saved;
        result = REAL(fcntl)(fd, command, argument);
    }
    return result;
}

TZ_EXPORT int fcntl64(int fd, int command, ...)
{
    FCNTL(real_fcntl64)
}
