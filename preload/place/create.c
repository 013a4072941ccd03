/* The application's call, made again as it was made or nearly so. */
#include "place/create.h"

int tz_call_open(const struct tz_call *call, int flags)
{
    switch (call->symbol) {
    case TZ_SYM_open64:
        return REAL(open64)(call->path, flags, call->mode);
    case TZ_SYM_openat:
        return REAL(openat)(call->dirfd, call->path, flags, call->mode);
    case TZ_SYM_openat64:
        return REAL(openat64)(call->dirfd, call->path, flags, call->mode);
    case TZ_SYM_creat:
        return flags == call->flags ? REAL(creat)(call->path, call->mode) : REAL(open)(call->path, flags, call->mode);
    case TZ_SYM_creat64:
        return flags == call->flags ? REAL(creat64)(call->path, call->mode)
                                    : REAL(open64)(call->path, flags, call->mode);
    default:
        return REAL(open)(call->path, flags, call->mode);
    }
}

int tz_call_mkdir(const struct tz_call *call)
{
    return call->symbol == TZ_SYM_mkdirat ? REAL(mkdirat)(call->dirfd, call->path, call->mode)
                                          : REAL(mkdir)(call->path, call->mode);
}

bool tz_is_same(int fd, int other, struct tz_stat *st)
{
    struct tz_stat second;

    return tz_look(fd, st) == 0 && tz_look(other, &second) == 0 && st->ino == second.ino && st->dev == second.dev;
}

/* Puts `better` where `fd` is, so that the application sees the number that it would have seen. */
static int replace(const struct tz_call *call, int fd, int better)
{
    if (REAL(dup3)(better, fd, call->flags & O_CLOEXEC) < 0) {
        REAL(close)(fd);
        return better;
    }
    REAL(close)(better);
    return fd;
}

int tz_call_reopen(const struct tz_call *call, int fd)
{
    int again = tz_call_open(call, call->flags & ~(O_CREAT | O_EXCL | O_TRUNC)), saved = errno;
    struct tz_stat st;

    if (again < 0)
        return -1;
    if (tz_is_same(fd, again, &st))
        return replace(call, fd, again);
    REAL(close)(again);
    errno = saved;
    return -1;
}
