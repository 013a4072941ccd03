/* The calls that open or create files by name and return a descriptor. */
#include "hooks/opening.h"
#include "life/start.h"
#include "place/apply.h"

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

/* `mode` is there only where the flags say so. */
#define OPEN(name, parameters, directory)                                                                              \
    TZ_EXPORT int name parameters                                                                                      \
    {                                                                                                                  \
        mode_t mode = 0;                                                                                               \
                                                                                                                       \
        if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {                                                   \
            va_list arguments;                                                                                         \
            va_start(arguments, flags);                                                                                \
            mode = va_arg(arguments, mode_t);                                                                          \
            va_end(arguments);                                                                                         \
        }                                                                                                              \
        return hook_open(&(struct tz_call){TZ_SYM_##name, directory, path, flags, mode});                              \
    }

OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD)
OPEN(openat, (int dirfd, const char *path, int flags, ...), dirfd)
OPEN(openat64, (int dirfd, const char *path, int flags, ...), dirfd)

#define CREAT(name)                                                                                                    \
    TZ_EXPORT int name(const char *path, mode_t mode)                                                                  \
    {                                                                                                                  \
        return hook_open(&(struct tz_call){TZ_SYM_##name, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode});        \
    }

CREAT(creat)
CREAT(creat64)

/* A re-opened or freshly named file: `fd` is open already, only the record remains. */
static int after_open(int fd, const struct tz_call *call)
{
    struct tz_opening opening;
    int saved = errno;

    if (fd < 0 || !tz_opening_matters(call->flags) || !tz_enter())
        return fd;
    if (tz_opening_begin(&opening, call)) {
        if (opening.creates && opening.create.outcome != TZ_UNMANAGED) {
            tz_skipped(&opening.create, TZ_HAS_LAYOUT);
            opening.create.found = TZ_FOUND_NOT;
            opening.create.row_id = 0;
        }
        tz_opening_end(&opening, fd, NULL);
    }
    tz_leave();
    errno = saved;
    return fd;
}

#define FORTIFIED(name, symbol, parameters, arguments, directory)                                                      \
    TZ_EXPORT int name parameters                                                                                      \
    {                                                                                                                  \
        return after_open(REAL(name) arguments, &(struct tz_call){symbol, directory, path, flags, 0});                 \
    }

FORTIFIED(__open_2, TZ_SYM_open, (const char *path, int flags), (path, flags), AT_FDCWD)
FORTIFIED(__open64_2, TZ_SYM_open64, (const char *path, int flags), (path, flags), AT_FDCWD)
FORTIFIED(__openat_2, TZ_SYM_openat, (int dirfd, const char *path, int flags), (dirfd, path, flags), dirfd)
FORTIFIED(__openat64_2, TZ_SYM_openat64, (int dirfd, const char *path, int flags), (dirfd, path, flags), dirfd)

#define TEMPORARY(function, parameters, arguments, flags)                                                              \
    TZ_EXPORT int function parameters                                                                                  \
    {                                                                                                                  \
        int how = O_CREAT | O_EXCL | O_RDWR | ((flags) & ~O_ACCMODE);                                                  \
                                                                                                                       \
        return after_open(REAL(function) arguments, &(struct tz_call){TZ_SYM_open, AT_FDCWD, name, how, 0600});        \
    }

TEMPORARY(mkstemp, (char *name), (name), 0)
TEMPORARY(mkstemp64, (char *name), (name), 0)
TEMPORARY(mkostemp, (char *name, int flags), (name, flags), flags)
TEMPORARY(mkostemp64, (char *name, int flags), (name, flags), flags)
TEMPORARY(mkstemps, (char *name, int suffix), (name, suffix), 0)
TEMPORARY(mkstemps64, (char *name, int suffix), (name, suffix), 0)
TEMPORARY(mkostemps, (char *name, int suffix, int flags), (name, suffix, flags), flags)
TEMPORARY(mkostemps64, (char *name, int suffix, int flags), (name, suffix, flags), flags)
