/*
 * The open of a placed file. A new one is made by an open for reading: for that the MDS makes no objects, and no
 * process of this node that opens the file to write borrows its handle. Then it gets its layout, and is opened again
 * for what the program asked. So at no moment is it open to be written and without a layout, where a write would fail.
 *
 * It is made with O_EXCL: only then is it known who made it. Nothing here truncates or re-creates: other processes may
 * have written already. Whatever is refused, the application gets what it would have got without us.
 */
#include "place/apply.h"
#include "base/cancel.h"
#include "base/rawsys.h"
#include "place/complete.h"
#include "place/decide.h"
#include "place/layout_fd.h"
#include "place/llapi.h"
#include "place/refuse.h"
#include "place/writable.h"
#include "process/config.h"

static uint32_t cannot_reserve; /* atomic: fallocate is not supported here */

static bool writes(const struct tz_create *c)
{
    return (c->call.flags & O_ACCMODE) != O_RDONLY;
}

/* Lists on late components are only asked for when their objects can be made at once. */
static enum tz_request_lists lists_of(const struct tz_create *c, const struct tz_plan *plan)
{
    if (!tz_layout_has_late_lists(&plan->layout))
        return TZ_LISTS_ALL;
    if (tz_config.hints || !writes(c) || tz_load(&cannot_reserve) || !tz_layout_can_instantiate(&plan->layout))
        return TZ_LISTS_FIRST;
    return TZ_LISTS_ALL;
}

/* The file is ours and has been given a layout, by us or by one that joined at once: what has it really? */
static void complete(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int fd)
{
    if (!tz_complete_own(c, plan, lists, fd))
        tz_store(&cannot_reserve, 1);
}

/* To the file that has the program's name; false where there is none. */
static bool offer(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int cancels = tz_cancels_hold();
    int named = tz_call_open(&c->call, O_PATH | O_CLOEXEC | (c->call.flags & O_NOFOLLOW));
    bool there = named >= 0 || errno != ENOENT;

    if (named >= 0) {
        tz_layout_offer(named, plan, lists, c->scratch);
        REAL(close)(named);
    }
    tz_cancels_allow(cancels);
    return there;
}

/*
 * The name exists: another process was faster, or the file is old. One that has no layout yet gets ours, before the
 * program's own open has the MDS make the default one. That open is made as it came: it may wait, and fail.
 */
static int join(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd;

    c->existence = TZ_EXISTED;
    if (writes(c) && !offer(c, plan, lists)) /* a link to nowhere, or gone by now */
        c->existence = TZ_PERHAPS;
    fd = tz_call_open(&c->call, c->call.flags);
    if (fd >= 0 && !tz_complete_others(c, plan, lists, fd))
        tz_skipped(c, TZ_NOT_PLAIN);
    return fd;
}

/* `enable_setstripe_gid`: this user's layouts are ignored in silence. */
static void ignored(struct tz_create *c)
{
    tz_store(&c->where.mount->foreign, 1);
    tz_refused(c, EPERM);
}

/* From the descriptor that it was made with to the one that the program gets. */
static int finish(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int fd)
{
    int rc = tz_layout_set(fd, plan, lists, c->scratch);
    bool missing;

    c->existence = TZ_FRESH;
    if (rc)
        tz_refused(c, rc);
    missing = tz_layout_missing(fd) == ENODATA;
    if (writes(c))
        fd = tz_writable(c, fd);
    if (fd < 0 || rc)
        return fd;
    complete(c, plan, lists, fd);
    if (missing && c->outcome == TZ_RACED)
        ignored(c);
    return fd;
}

static int create(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd = tz_call_open(&c->call, tz_making_flags(c->call.flags)), cancels;

    if (fd < 0)
        return errno == EEXIST && !(c->call.flags & O_EXCL) ? join(c, plan, lists) : -1;
    cancels = tz_cancels_hold();
    fd = finish(c, plan, lists, fd);
    tz_cancels_allow(cancels);
    return fd;
}

/* As liblustreapi does it: the file is open to be written until it has its layout. */
static int create_by_llapi(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd = tz_llapi_open(c, plan, lists, c->call.flags | O_EXCL);

    if (fd < 0 && errno == ENOSYS)
        return create(c, plan, lists);
    if (fd < 0 && errno == EEXIST)
        return c->call.flags & O_EXCL ? -1 : join(c, plan, lists);
    if (fd < 0)
        return tz_refuse_unopened(c, errno);
    if (writes(c) && tz_layout_missing(fd) == ENODATA) {
        ignored(c);
        REAL(close)(fd); /* before another open, which would borrow its handle */
        return tz_refuse_unopened(c, EPERM);
    }
    c->existence = TZ_FRESH;
    complete(c, plan, lists, fd);
    return fd;
}

int tz_place_open(struct tz_create *c, const struct tz_plan *plan)
{
    int saved = errno, fd;
    enum tz_request_lists lists = lists_of(c, plan);

    fd = tz_config.llapi ? create_by_llapi(c, plan, lists) : create(c, plan, lists);
    if (fd >= 0)
        errno = saved; /* an open that succeeds leaves it as it was */
    return fd;
}

void tz_place_opened(struct tz_create *c, int fd)
{
    struct tz_create seen = *c;
    struct tz_plan plan;
    bool unplanned = (c->call.flags & O_CREAT) && c->outcome != TZ_SKIPPED;

    if (unplanned || !writes(c) || tz_config.hints || tz_load(&c->where.mount->foreign) ||
        tz_place_find(c, &plan) == TZ_FOUND_NOT || !tz_layout_has_late_lists(&plan.layout))
        return;
    tz_complete_others(c, &plan, TZ_LISTS_ALL, fd);
    seen.scratch = c->scratch;
    *c = seen; /* the outcome is not that of a file of this process's */
}
