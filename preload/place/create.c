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
