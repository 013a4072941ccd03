/*
 * The open of a placed file. The file is always created with O_EXCL: only then is it known who made it, and only its
 * maker replaces components of it. Nothing here truncates or re-creates: other processes may have written already.
 * Whatever is refused, the application gets what it would have got without us.
 */
#include "place.h"

#include <stdlib.h>
#include <sys/xattr.h>

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

/* Puts `better` where `fd` is, so that the application sees the number that it would have seen. */
static int replace_fd(const struct tz_call *call, int fd, int better)
{
    if (REAL(dup3)(better, fd, call->flags & O_CLOEXEC) < 0) {
        REAL(close)(fd);
        return better;
    }
    REAL(close)(better);
    return fd;
}

/* Opens the file behind `fd` again without the flag that leaves it without a layout; -1 when that is refused. */
static int reopen(const struct tz_call *call, int fd)
{
    int again = tz_call_open(call, call->flags & ~(O_CREAT | O_EXCL | O_TRUNC)), saved = errno;
    struct tz_stat first, second;

    if (again < 0)
        return -1;
    if (tz_look(fd, &first) == 0 && tz_look(again, &second) == 0 && first.ino == second.ino && first.dev == second.dev)
        return again;
    REAL(close)(again); /* another file has the name now */
    errno = saved;
    return -1;
}

static int name_directory(const struct tz_call *call)
{
    return call->symbol == TZ_SYM_openat || call->symbol == TZ_SYM_openat64 ? call->dirfd : AT_FDCWD;
}

/*
 * No OST takes any object: the open fails as it would have, and leaves no empty file of ours behind. Without a layout
 * nobody can have written to it.
 */
static int withdraw(const struct tz_create *c, int fd, int error)
{
    int named = tz_call_open(&c->call, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct tz_stat ours, found;

    if (named >= 0) {
        if (c->existence == TZ_FRESH && tz_look(fd, &ours) == 0 && tz_look(named, &found) == 0 &&
            ours.ino == found.ino && ours.dev == found.dev && ours.size == 0 &&
            fgetxattr(fd, XATTR_LUSTRE_LOV, NULL, 0) < 0 && errno == ENODATA)
            syscall(SYS_unlinkat, name_directory(&c->call), c->call.path, 0);
        REAL(close)(named);
    }
    REAL(close)(fd);
    errno = error;
    return -1;
}

/* What the record says of it; a mount that turns out not to be Lustre's is left alone from now on. */
static void refused(struct tz_create *c, int error)
{
    tz_doubt_lustre(c->where.mount, error);
    c->outcome = tz_load(&c->where.mount->foreign) ? TZ_SKIPPED : TZ_REFUSED;
    c->refusal = c->outcome == TZ_REFUSED ? (uint16_t)error : 0;
}

/* The layout was refused: the file gets the default one, as if we had not been there. */
static int refuse(struct tz_create *c, int fd, int error)
{
    const struct tz_call *call = &c->call;
    struct tz_stat st;
    int again;

    refused(c, error);
    c->lov_length = 0;
    again = reopen(call, fd);
    if (again < 0 && tz_look(fd, &st) == 0 && !(st.mode & S_IWUSR)) {
        /* An access list of the directory took our own right to write away: lend it for the second open. */
        if (syscall(SYS_fchmod, fd, (st.mode & 07777) | S_IWUSR) == 0) {
            again = reopen(call, fd);
            syscall(SYS_fchmod, fd, st.mode & 07777);
        }
    }
    if (again >= 0)
        return replace_fd(call, fd, again);
    error = tz_layout_set_default(fd, c->scratch);
    return error && error != EEXIST ? withdraw(c, fd, error) : fd;
}

static uint32_t cannot_reserve; /* atomic: fallocate is not supported here */

/* Lists on late components are only asked for when their objects can be made at once. */
static enum tz_request_lists lists_of(const struct tz_create *c, const struct tz_plan *plan)
{
    if (!tz_layout_has_late_lists(&plan->layout))
        return TZ_LISTS_ALL;
    if (tz_config.hints || (c->call.flags & O_ACCMODE) == O_RDONLY || tz_load(&cannot_reserve) ||
        !tz_layout_can_instantiate(&plan->layout))
        return TZ_LISTS_FIRST;
    return TZ_LISTS_ALL;
}

/* Makes the objects of late components; what the MDS does not make on the listed OSTs gets hints. */
static int complete(struct tz_create *c, const struct tz_plan *plan, int fd)
{
    int rc = tz_layout_instantiate(fd, &plan->layout);
    enum tz_lov_verdict verdict;
    uint16_t late;

    if (tz_layout_read(fd, c))
        return fd;
    verdict = tz_lov_compare(c->scratch->lov, c->lov_length, &plan->layout, plan->row.osts, TZ_LISTS_ALL, &late);
    c->outcome = verdict == TZ_LOV_AS_ASKED ? TZ_HIT : verdict == TZ_LOV_OTHER ? TZ_RACED : TZ_PARTLY;
    if (verdict != TZ_LOV_LATE || late == 0)
        return fd;
    if (rc == EOPNOTSUPP || rc == ENOSYS)
        tz_store(&cannot_reserve, 1);
    c->refusal = (uint16_t)tz_layout_replace_tail(fd, c, plan, late);
    return fd;
}

/* The file is ours and has been given a layout, by us or by one that joined at once: what has it really? */
static int verify(struct tz_create *c, const struct tz_plan *plan, int fd, enum tz_request_lists lists)
{
    enum tz_lov_verdict verdict;
    uint16_t late;

    c->outcome = TZ_HIT;
    if (tz_layout_read(fd, c))
        return fd;
    verdict = tz_lov_compare(c->scratch->lov, c->lov_length, &plan->layout, plan->row.osts, lists, &late);
    if (verdict == TZ_LOV_OTHER)
        c->outcome = TZ_RACED;
    return verdict == TZ_LOV_LATE ? complete(c, plan, fd) : fd;
}

/* Not a file that can have a layout: without the flag bits, which only Lustre takes off by itself. */
static int leave_alone(struct tz_create *c, int fd)
{
    long now = syscall(SYS_fcntl, fd, F_GETFL);

    if (now >= 0 && (now & O_ASYNC) && !(c->call.flags & O_ASYNC))
        syscall(SYS_fcntl, fd, F_SETFL, now & ~(long)O_ASYNC);
    c->outcome = TZ_SKIPPED;
    return fd;
}

/* The name exists: another process was faster, or the file is old. Its layout stays; one without any gets ours. */
static int join(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd = tz_call_open(&c->call, c->call.flags | O_LOV_DELAY_CREATE), rc;
    enum tz_lov_verdict verdict;
    struct tz_stat st;
    uint16_t late;

    if (fd < 0)
        return tz_call_open(&c->call, c->call.flags);
    c->existence = TZ_EXISTED;
    if (tz_look(fd, &st) || !S_ISREG(st.mode))
        return leave_alone(c, fd);
    rc = tz_layout_read(fd, c);
    if (rc == ENODATA) {
        rc = tz_layout_set(fd, plan, lists, c->scratch);
        if (rc && rc != EEXIST)
            return refuse(c, fd, rc);
        rc = tz_layout_read(fd, c);
    }
    if (rc)
        return leave_alone(c, fd);
    verdict = tz_lov_compare(c->scratch->lov, c->lov_length, &plan->layout, plan->row.osts, lists, &late);
    c->outcome = verdict == TZ_LOV_OTHER ? TZ_RACED : TZ_HIT;
    if (lists == TZ_LISTS_ALL)
        tz_place_settle(c, plan, fd);
    return fd;
}

/* An empty file of this moment without a layout, as liblustreapi leaves one that gets none: nobody can have written. */
static bool left_behind(const struct tz_call *call)
{
    int named = tz_call_open(call, O_PATH | O_NOFOLLOW | O_CLOEXEC), saved = errno;
    struct tz_stat st;
    bool empty;

    if (named < 0)
        return false;
    empty = tz_look(named, &st) == 0 && S_ISREG(st.mode) && st.size == 0 && st.uid == tz_euid() &&
            llabs((long long)tz_about_now_s() - st.changed_s) < 5;
    REAL(close)(named);
    empty = empty && lgetxattr(call->path, XATTR_LUSTRE_LOV, NULL, 0) < 0 && errno == ENODATA;
    errno = saved;
    return empty;
}

static int create(struct tz_create *c, const struct tz_plan *plan)
{
    enum tz_request_lists lists = lists_of(c, plan);
    int fd = -1, rc = 0, flags = c->call.flags | O_EXCL;
    bool by_llapi = false;

    if (tz_config.llapi) {
        fd = tz_llapi_open(c, plan, lists, flags);
        by_llapi = fd >= 0;
        if (fd < 0 && errno != ENOSYS && errno != EEXIST) {
            /* It may have left the file behind, without a layout. */
            refused(c, errno);
            fd = tz_call_open(&c->call, c->call.flags & ~(O_CREAT | O_EXCL | O_TRUNC));
            if (fd >= 0) {
                c->existence = TZ_FRESH;
                return fd;
            }
            if (errno != ENOENT && left_behind(&c->call))
                syscall(SYS_unlinkat, AT_FDCWD, c->call.path, 0); /* or O_EXCL would say that it exists */
            return tz_call_open(&c->call, c->call.flags);
        }
    }
    if (fd < 0)
        fd = tz_call_open(&c->call, flags | O_LOV_DELAY_CREATE);
    if (fd < 0) {
        if (c->call.flags & O_EXCL)
            return fd;
        return errno == EEXIST ? join(c, plan, lists) : tz_call_open(&c->call, c->call.flags);
    }
    c->existence = TZ_FRESH;
    if (!by_llapi)
        rc = tz_layout_set(fd, plan, lists, c->scratch);
    /* EEXIST: another process opened it in between, and made a layout. For a composite nobody says so. */
    return rc && rc != EEXIST ? refuse(c, fd, rc) : verify(c, plan, fd, lists);
}

int tz_place_open(struct tz_create *c, const struct tz_plan *plan)
{
    int saved = errno, fd = create(c, plan);

    if (fd >= 0)
        errno = saved; /* an open that succeeds leaves it as it was */
    return fd;
}
