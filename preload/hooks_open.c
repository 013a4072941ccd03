/* The calls that open or create files by name and return a descriptor. */
#include "hooks.h"
#include "node.h"
#include "stop.h"

#include <stdarg.h>
#include <stdlib.h>

/* The flags of an open that the recorder or placement can care about: most opens of a program end here. */
static bool can_write(int flags)
{
    if (flags & O_PATH)
        return false;
#ifdef O_TMPFILE
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return false; /* no name, and not supported by Lustre */
#endif
    return (flags & O_CREAT) || (flags & O_ACCMODE) != O_RDONLY;
}

bool tz_opening_begin(struct tz_opening *o, const struct tz_call *call)
{
    struct tz_create *c = &o->create;
    struct tz_scratch *scratch = NULL;
    struct tz_where where;
    int saved = errno;

    if (!tz_locate(call->dirfd, call->path, &scratch, &where) || !tz_key_wanted(where.key, where.key_length)) {
        tz_scratch_put(scratch);
        errno = saved;
        return false;
    }
    *c = (struct tz_create){.call = *call, .scratch = scratch, .where = where};
    o->creates = call->flags & O_CREAT;
    o->place = false;
    o->stopped = tz_stopped(&c->said);
    if (o->creates) {
        if (call->flags & O_EXCL)
            c->existence = TZ_FRESH;
        tz_template(c->where.key, c->where.key_length, &tz_config.ident, &c->scratch->names);
        if (tz_owner_quick())
            tz_counters_take(c->where.mount, c->where.key, c->where.key_length, &c->scratch->names, &c->nth);
        o->place = !o->stopped && tz_place_decide(c, &o->plan);
    }
    errno = saved;
    return true;
}

void tz_opening_end(struct tz_opening *o, int fd, FILE *stream)
{
    struct tz_create *c = &o->create;
    int saved = errno;
    enum tz_made made = TZ_NOT_MADE;

    if (fd < 0) {
        if (o->creates)
            tz_counters_return(&c->nth);
    } else if (o->stopped) {
        if (o->creates)
            tz_node_passed_over(); /* names are counted on: those of later files must be found again */
    } else {
        if (o->creates)
            made = tz_record_create(c, fd);
        else
            tz_place_opened(c, fd);
        tz_record_open(fd, &c->where, c->call.flags, made, stream);
    }
    tz_scratch_put(c->scratch);
    errno = saved;
}

int tz_hook_open(const struct tz_call *call)
{
    struct tz_opening opening;
    int fd;

    if (!can_write(call->flags) || !tz_enter())
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
    return tz_hook_open(&(struct tz_call){TZ_SYM_open, AT_FDCWD, path, flags, mode});
}

TZ_EXPORT int open64(const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return tz_hook_open(&(struct tz_call){TZ_SYM_open64, AT_FDCWD, path, flags, mode});
}

TZ_EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return tz_hook_open(&(struct tz_call){TZ_SYM_openat, dirfd, path, flags, mode});
}

TZ_EXPORT int openat64(int dirfd, const char *path, int flags, ...)
{
    MODE_OF(flags, flags)
    return tz_hook_open(&(struct tz_call){TZ_SYM_openat64, dirfd, path, flags, mode});
}

TZ_EXPORT int creat(const char *path, mode_t mode)
{
    return tz_hook_open(&(struct tz_call){TZ_SYM_creat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode});
}

TZ_EXPORT int creat64(const char *path, mode_t mode)
{
    return tz_hook_open(&(struct tz_call){TZ_SYM_creat64, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode});
}

/* A re-opened or freshly named file: `fd` is open already, only the record remains. */
static int after_open(int fd, const struct tz_call *call)
{
    struct tz_opening opening;
    int saved = errno;

    if (fd < 0 || !can_write(call->flags) || !tz_enter())
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
