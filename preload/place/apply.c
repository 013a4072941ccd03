/*
 * The open of a placed file. The file is always created with O_EXCL: only then is it known who made it, and only its
 * maker replaces components of it. Nothing here truncates or re-creates: other processes may have written already.
 * Whatever is refused, the application gets what it would have got without us.
 */
#include "place/apply.h"
#include "base/rawsys.h"
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
    c->outcome = TZ_SKIPPED;
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
    }
    if (standing == TZ_NO_LAYOUT || standing == TZ_UNREADABLE)
        return leave_alone(c, fd);
    if (lists == TZ_LISTS_ALL)
        tz_place_settle(c, plan, standing, fd);
    return fd;
}

/* The name exists: another process was faster, or the file is old. */
static int join(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd = tz_call_open(&c->call, c->call.flags | O_LOV_DELAY_CREATE);
    struct tz_stat st;

    if (fd < 0)
        return tz_call_open(&c->call, c->call.flags);
    c->existence = TZ_EXISTED;
    return tz_look(fd, &st) == 0 && S_ISREG(st.mode) ? share(c, plan, lists, fd) : leave_alone(c, fd);
}

static int create(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd = tz_call_open(&c->call, c->call.flags | O_EXCL | O_LOV_DELAY_CREATE), rc;

    if (fd < 0 && !(c->call.flags & O_EXCL))
        return errno == EEXIST ? join(c, plan, lists) : tz_call_open(&c->call, c->call.flags);
    if (fd < 0)
        return fd;
    c->existence = TZ_FRESH;
    rc = tz_layout_set(fd, plan, lists, c->scratch);
    /* EEXIST: another process opened it in between, and made a layout. For a composite nobody says so. */
    return rc && rc != EEXIST ? tz_refuse(c, fd, rc) : verify(c, plan, lists, fd);
}

static int create_by_llapi(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd = tz_llapi_open(c, plan, lists, c->call.flags | O_EXCL);

    if (fd < 0)
        return errno == ENOSYS || errno == EEXIST ? create(c, plan, lists) : tz_refuse_unopened(c, errno);
    c->existence = TZ_FRESH;
    return verify(c, plan, lists, fd);
}

int tz_place_open(struct tz_create *c, const struct tz_plan *plan)
{
    enum tz_request_lists lists = lists_of(c, plan);
    int saved = errno, fd = tz_config.llapi ? create_by_llapi(c, plan, lists) : create(c, plan, lists);

    if (fd >= 0)
        errno = saved; /* an open that succeeds leaves it as it was */
    return fd;
}
