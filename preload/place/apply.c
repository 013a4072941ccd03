/*
 * The open of a placed file. The file is always created with O_EXCL: only then is it known who made it, and only its
 * maker replaces components of it. Nothing here truncates or re-creates: other processes may have written already.
 * Whatever is refused, the application gets what it would have got without us.
 *
 * Until its maker has set its layout a file has none, and another process of this node that opens it by its name fails
 * at its first write. So a file that several processes open is made under a name of ours beside its own, and linked to
 * its own when it is complete.
 */
#include "place/apply.h"
#include "base/rawsys.h"
#include "place/beside.h"
#include "place/ceph.h"
#include "place/decide.h"
#include "place/examine.h"
#include "place/layout_fd.h"
#include "place/llapi.h"
#include "place/refuse.h"
#include "place/settle.h"
#include "process/config.h"

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

/* The file is ours and has been given a layout, by us or by one that joined at once: what has it really? */
static int verify(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int fd)
{
    enum tz_standing standing = tz_examine(c, plan, lists, fd);
    int rc;

    if (standing == TZ_NO_LAYOUT) /* `enable_setstripe_gid`: this user's layouts are ignored in silence */
        return tz_refuse(c, fd, EPERM);
    if (standing != TZ_OBJECTS_MISSING)
        return fd;
    rc = tz_layout_instantiate(fd, &plan->layout);
    standing = tz_examine(c, plan, TZ_LISTS_ALL, fd);
    if (standing == TZ_OBJECTS_MISSING) { /* the MDS does not make them on the listed OSTs */
        if (rc == EOPNOTSUPP || rc == ENOSYS)
            tz_store(&cannot_reserve, 1);
        tz_fall_back(c, plan, standing, fd);
    }
    return fd;
}

/* Not a file that can have a layout: without the flag bits, which only Lustre takes off by itself. */
static int leave_alone(struct tz_create *c, int fd)
{
    long now = syscall(SYS_fcntl, fd, F_GETFL);

    if (now >= 0 && (now & O_ASYNC) && !(c->call.flags & O_ASYNC))
        syscall(SYS_fcntl, fd, F_SETFL, now & ~(long)O_ASYNC);
    tz_skipped(c, TZ_NOT_PLAIN);
    return fd;
}

/* A file that was there: its layout stays; one without any gets ours. */
static int share(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int fd)
{
    enum tz_standing standing = tz_examine(c, plan, lists, fd);
    int rc = 0;

    if (standing == TZ_NO_LAYOUT) {
        rc = tz_layout_set(fd, plan, lists, c->scratch);
        if (rc && rc != EEXIST)
            return tz_refuse(c, fd, rc);
        standing = tz_examine(c, plan, lists, fd);
        if (standing == TZ_NO_LAYOUT)
            return tz_refuse(c, fd, EPERM);
    }
    if (standing == TZ_UNREADABLE)
        return leave_alone(c, fd);
    if (lists == TZ_LISTS_ALL)
        tz_place_settle(c, plan, standing, fd);
    return fd;
}

static int join(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int fd)
{
    struct tz_stat st;

    c->existence = TZ_EXISTED;
    return tz_look(fd, &st) == 0 && S_ISREG(st.mode) ? share(c, plan, lists, fd) : leave_alone(c, fd);
}

/* The name exists: another process was faster, or the file is old. */
static int open_existing(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd = tz_call_open(&c->call, c->call.flags | O_LOV_DELAY_CREATE);

    return fd < 0 ? tz_call_open(&c->call, c->call.flags) : join(c, plan, lists, fd);
}

/* Opens a name that is not there yet and gives the file its layout; 0 or an errno. What stays open then has none. */
static int open_new(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int *fd)
{
    int flags = c->call.flags | O_EXCL, rc;

    if (tz_config.llapi) {
        *fd = tz_llapi_open(c, plan, lists, flags);
        if (*fd >= 0 || errno != ENOSYS)
            return *fd >= 0 ? 0 : errno;
    }
    *fd = tz_call_open(&c->call, flags | O_LOV_DELAY_CREATE);
    if (*fd < 0)
        return errno;
    rc = tz_layout_set(*fd, plan, lists, c->scratch);
    /* EEXIST: another process opened it in between, and made a layout. For a composite nobody says so. */
    return rc == EEXIST ? 0 : rc;
}

static int create(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd, rc = open_new(c, plan, lists, &fd);

    if (rc == EEXIST && !(c->call.flags & O_EXCL))
        return open_existing(c, plan, lists);
    if (fd < 0 && tz_config.llapi && rc != EEXIST)
        return tz_refuse_unopened(c, rc);
    if (fd < 0) {
        errno = rc;
        return c->call.flags & O_EXCL ? -1 : tz_call_open(&c->call, c->call.flags);
    }
    c->existence = TZ_FRESH;
    return rc ? tz_refuse(c, fd, rc) : verify(c, plan, lists, fd);
}

/* The complete file at `fd`, so far `beside`, gets its name; 0 or an errno, EEXIST where that is taken. */
static int name(struct tz_create *c, const struct tz_call *asked, const char *beside)
{
    int rc = syscall(SYS_linkat, asked->dirfd, beside, asked->dirfd, asked->path, 0) ? errno : 0;

    syscall(SYS_unlinkat, asked->dirfd, beside, 0);
    if (rc == 0)
        c->existence = TZ_FRESH;
    return rc;
}

static int create_beside(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    const struct tz_call asked = c->call;
    char beside[TZ_PATH_MAX];
    int fd, rc, again;

    if (!tz_beside(c, beside))
        return create(c, plan, lists);
    c->call.path = beside;
    rc = open_new(c, plan, lists, &fd);
    if (rc == 0)
        fd = verify(c, plan, lists, fd);
    c->call = asked;
    if (rc == 0 && fd < 0) /* withdrawn: no OST takes any object */
        return tz_call_open(&asked, asked.flags);
    if (rc) {
        bool there = fd >= 0 || (tz_config.llapi && rc != EEXIST);

        if (there)
            syscall(SYS_unlinkat, asked.dirfd, beside, 0);
        if (fd >= 0)
            REAL(close)(fd);
        if (!there) /* nothing could be made: the call itself says why */
            return create(c, plan, lists);
        tz_refused(c, rc);
        return tz_call_open(&asked, asked.flags);
    }
    rc = name(c, &asked, beside);
    if (rc == 0) {
        again = tz_call_reopen(&asked, fd); /* /proc/self/fd shows the name by which it was opened */
        return again >= 0 ? again : fd;
    }
    REAL(close)(fd);
    if (rc == EEXIST && (asked.flags & O_EXCL)) {
        errno = EEXIST;
        return -1;
    }
    return rc == EEXIST ? open_existing(c, plan, lists) : create(c, plan, lists);
}

static int create_shared(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd = -1;

    if (!(c->call.flags & O_EXCL)) { /* most of its openers find it there */
        fd = tz_call_open(&c->call, (c->call.flags & ~O_CREAT) | O_LOV_DELAY_CREATE);
        if (fd < 0 && errno != ENOENT)
            return tz_call_open(&c->call, c->call.flags);
    }
    return fd < 0 ? create_beside(c, plan, lists) : join(c, plan, lists, fd);
}

int tz_place_open(struct tz_create *c, const struct tz_plan *plan)
{
    enum tz_request_lists lists;
    int saved = errno, fd;

    if (c->where.mount->kind == TZ_CEPH)
        return tz_ceph_open(c, plan);
    lists = lists_of(c, plan);
    fd = plan->layout.shared ? create_shared(c, plan, lists) : create(c, plan, lists);

    if (fd >= 0)
        errno = saved; /* an open that succeeds leaves it as it was */
    return fd;
}

void tz_place_opened(struct tz_create *c, int fd)
{
    int flags = c->call.flags, error;
    uint8_t outcome = c->outcome;
    bool looked_up = (flags & O_CREAT) && (outcome == TZ_UNMANAGED || outcome == TZ_LATE || outcome == TZ_MISS);
    enum tz_found found;
    struct tz_plan plan;

    if (c->where.mount->kind == TZ_CEPH || (flags & O_ACCMODE) == O_RDONLY ||
        (flags & O_LOV_DELAY_CREATE) == O_LOV_DELAY_CREATE || tz_load(&c->where.mount->foreign))
        return;
    found = looked_up ? TZ_FOUND_NOT : tz_place_find(c, &plan);
    error = tz_layout_missing(fd);
    /* Only its maker can tell which of the expected files one is that has not the expected name. */
    if (error == ENODATA && found == TZ_FOUND_EXACT) {
        error = tz_layout_set(fd, &plan, lists_of(c, &plan), c->scratch);
        error = error && error != EEXIST ? ENODATA : 0;
    }
    if (error == ENODATA)
        tz_place_wait(c, fd);
    else if (error && found != TZ_FOUND_NOT)
        tz_mount_doubt(c->where.mount, error);
    if (!error && found != TZ_FOUND_NOT && !tz_config.hints)
        tz_place_settle(c, &plan, tz_examine(c, &plan, TZ_LISTS_ALL, fd), fd);
    c->outcome = outcome; /* not that of a file of this process's */
    c->lov_length = 0;
}
