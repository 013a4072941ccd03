/* The calls that open or create files by name and return a descriptor. */
#include "hooks/opening.h"
#include "life/start.h"
#include "place/apply.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

static int hook_open(const struct tz_call *call)
{
    struct tz_opening opening;
    int fd;

    if (!tz_opening_matters(call->flags) || !tz_enter())
        return tz_call_open(call, call->flags);
    if (!tz_opening_begin(&opening, call)) {
        tz_leave();
        return tz_call_open(call, call->flags);
    }
    fd = opening.place ? tz_place_open(&opening.create, &opening.plan) : tz_call_open(call, call->flags);
    tz_opening_end(&opening, fd, NULL);
    tz_leave();
    return fd;
}

#define MODE_OF(flags, last)                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if (((flags)&O_CREAT) || ((flags)&O_TMPFILE) == O_TMPFILE) {                                                       \
        va_list arguments;                                                                                             \
        va_start(arguments, last);                                                                                     \
        mode = va_arg(arguments, mode_t);                                                                              \
        va_end(arguments);                                                                                             \
    }

TZ_EXPORT int open(const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return hook_open(&(struct tz_call){TZ_SYM_open, AT_FDCWD, path, flags, mode});
}

TZ_EXPORT int open64(const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return hook_open(&(struct tz_call){TZ_SYM_open64, AT_FDCWD, path, flags, mode});
}

TZ_EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return hook_open(&(struct tz_call){TZ_SYM_openat, dirfd, path, flags, mode});
}

TZ_EXPORT int openat64(int dirfd, const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return hook_open(&(struct tz_call){TZ_SYM_openat64, dirfd, path, flags, mode});
}

TZ_EXPORT int creat(const char *path, mode_t mode)
{
    return hook_open(&(struct tz_call){TZ_SYM_creat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode});
}

TZ_EXPORT int creat64(const char *path, mode_t mode)
{
    return hook_open(&(struct tz_call){TZ_SYM_creat64, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode});
}

/* A re-opened or freshly named file: `fd` is open already, only the record remains. */
static int after_open(int fd, const struct tz_call *call)
{
    struct tz_opening opening;
    int saved = errno;

    if (fd < 0 || !tz_opening_matters(call->flags) || !tz_enter())
        return fd;
    if (tz_opening_begin(&opening, call)) {
        if (opening.creates && opening.create.outcome != TZ_UNMANAGED) {
            opening.create.outcome = TZ_SKIPPED; /* it exists with a layout already */
            opening.create.found = TZ_FOUND_NOT;
            opening.create.row_id = 0;
        }
        tz_opening_end(&opening, fd, NULL);
    }
    tz_leave();
    errno = saved;
    return fd;
}

TZ_EXPORT int __open_2(const char *path, int flags)
{
    return after_open(REAL(__open_2)(path, flags), &(struct tz_call){TZ_SYM_open, AT_FDCWD, path, flags, 0});
}

TZ_EXPORT int __open64_2(const char *path, int flags)
{
    return after_open(REAL(__open64_2)(path, flags), &(struct tz_call){TZ_SYM_open64, AT_FDCWD, path, flags, 0});
}

TZ_EXPORT int __openat_2(int dirfd, const char *path, int flags)
{
    return after_open(REAL(__openat_2)(dirfd, path, flags), &(struct tz_call){TZ_SYM_openat, dirfd, path, flags, 0});
}

TZ_EXPORT int __openat64_2(int dirfd, const char *path, int flags)
{
    return after_open(REAL(__openat64_2)(dirfd, path, flags),
                      &(struct tz_call){TZ_SYM_openat64, dirfd, path, flags, 0});
}

#define MADE(call, name, flags)                                                                                        \
    after_open(call, &(struct tz_call){TZ_SYM_open, AT_FDCWD, name,                                                    \
                                       O_CREAT | O_EXCL | O_RDWR | ((flags) & ~O_ACCMODE), 0600})

TZ_EXPORT int mkstemp(char *name)
{
    return MADE(REAL(mkstemp)(name), name, 0);
}

TZ_EXPORT int mkstemp64(char *name)
{
    return MADE(REAL(mkstemp64)(name), name, 0);
}

TZ_EXPORT int mkostemp(char *name, int flags)
{
    return MADE(REAL(mkostemp)(name, flags), name, flags);
}

TZ_EXPORT int mkostemp64(char *name, int flags)
{
    return MADE(REAL(mkostemp64)(name, flags), name, flags);
}

TZ_EXPORT int mkstemps(char *name, int suffix)
{
    return MADE(REAL(mkstemps)(name, suffix), name, 0);
}

TZ_EXPORT int mkstemps64(char *name, int suffix)
{
    return MADE(REAL(mkstemps64)(name, suffix), name, 0);
}

TZ_EXPORT int mkostemps(char *name, int suffix, int flags)
{
    return MADE(REAL(mkostemps)(name, suffix, flags), name, flags);
}

TZ_EXPORT int mkostemps64(char *name, int suffix, int flags)
{
    return MADE(REAL(mkostemps64)(name, suffix, flags), name, flags);
}
