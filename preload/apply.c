/*
 * The open of a placed file. The file is always created with O_EXCL: only then is it known whether it is ours, and
 * only a file of ours is ever truncated or re-created. Whatever is refused, the application gets what it would have
 * got without us.
 */
#include "place.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <time.h>

enum { SETTLE_TRIES = 8 };

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
    if (tz_fstat(fd, &first) == 0 && tz_fstat(again, &second) == 0 && first.ino == second.ino &&
        first.dev == second.dev)
        return again;
    REAL(close)(again); /* another file has the name now */
    errno = saved;
    return -1;
}

static int name_directory(const struct tz_call *call)
{
    return call->symbol == TZ_SYM_openat || call->symbol == TZ_SYM_openat64 ? call->dirfd : AT_FDCWD;
}

/* No OST takes any object: the open fails as it would have, and leaves no empty file of ours behind. */
static int withdraw(const struct tz_create *c, int fd, int error)
{
    int named = tz_call_open(&c->call, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct tz_stat ours, found;

    if (named >= 0) {
        if (c->existence == TZ_FRESH && tz_fstat(fd, &ours) == 0 && tz_fstat(named, &found) == 0 &&
            ours.ino == found.ino && ours.dev == found.dev && ours.size == 0)
            syscall(SYS_unlinkat, name_directory(&c->call), c->call.path, 0);
        REAL(close)(named);
    }
    REAL(close)(fd);
    errno = error;
    return -1;
}

/* The layout was refused: the file gets the default one, as if we had not been there. */
static int refuse(struct tz_create *c, int fd, int error)
{
    const struct tz_call *call = &c->call;
    uint8_t plain[TZ_LOV_HEAD] = {0};
    struct tz_stat st;
    int again;

    c->outcome = TZ_REFUSED;
    c->refusal = (uint16_t)error;
    c->lov_length = 0;
    again = reopen(call, fd);
    if (again < 0 && tz_fstat(fd, &st) == 0 && !(st.mode & S_IWUSR)) {
        /* An access list of the directory took our own right to write away: lend it for the second open. */
        if (syscall(SYS_fchmod, fd, (st.mode & 07777) | S_IWUSR) == 0) {
            again = reopen(call, fd);
            syscall(SYS_fchmod, fd, st.mode & 07777);
        }
    }
    if (again >= 0)
        return replace_fd(call, fd, again);
    tz_put32(plain, TZ_LOV_V1);
    tz_put16(plain + 30, TZ_OFFSET_ANY);
    error = tz_layout_set_blob(fd, plain, sizeof plain, false);
    return error && error != EEXIST ? withdraw(c, fd, error) : fd;
}

/* Ours, but its layout is beyond repair: away with it, and once more without us. */
static int recreate(struct tz_create *c, int fd, int error)
{
    const struct tz_call *call = &c->call;
    int again;

    if (syscall(SYS_unlinkat, name_directory(call), call->path, 0))
        return fd;
    again = tz_call_open(call, call->flags);
    c->outcome = TZ_REFUSED;
    c->refusal = (uint16_t)error;
    c->lov_length = 0;
    return again < 0 ? fd : replace_fd(call, fd, again);
}

static uint64_t last_list_start(const struct tz_layout *layout)
{
    uint64_t start = 0;

    for (uint16_t i = 0; i < layout->count; i++)
        if (layout->components[i].flags & TZ_COMP_LIST)
            start = layout->components[i].start;
    return start;
}

static bool has_extension(const struct tz_layout *layout)
{
    for (uint16_t i = 0; i < layout->count; i++)
        if (layout->components[i].flags & TZ_COMP_SEL)
            return true;
    return false;
}

static bool beyond_limit(uint64_t start)
{
    struct rlimit limit;

    return start && (getrlimit(RLIMIT_FSIZE, &limit) || (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= start));
}

static uint32_t cannot_reserve; /* atomic: fallocate is not supported here */

/* Lists on late components are only asked for when their objects can be made at once. */
static enum tz_request_lists lists_of(const struct tz_create *c, const struct tz_plan *plan)
{
    if (tz_config.hints || (c->call.flags & O_ACCMODE) == O_RDONLY || beyond_limit(last_list_start(&plan->layout)))
        return TZ_LISTS_FIRST;
    if (!plan->alone && (tz_load(&cannot_reserve) || has_extension(&plan->layout)))
        return TZ_LISTS_FIRST;
    return TZ_LISTS_ALL;
}

/* Makes the objects of late components; what the MDS does not make on the listed OSTs gets hints. */
static int complete(struct tz_create *c, const struct tz_plan *plan, int fd, uint16_t late)
{
    enum tz_lov_verdict verdict;
    int rc = tz_layout_instantiate(fd, last_list_start(&plan->layout), plan->alone);

    if (rc == EOPNOTSUPP || rc == ENOSYS)
        tz_store(&cannot_reserve, 1);
    if (tz_layout_read(fd, c))
        return fd;
    verdict = tz_lov_compare(c->scratch->lov, c->lov_length, &plan->layout, plan->row.osts, TZ_LISTS_ALL, &late);
    c->outcome = verdict == TZ_LOV_AS_ASKED ? TZ_HIT : verdict == TZ_LOV_OTHER ? TZ_RACED : TZ_PARTLY;
    if (verdict != TZ_LOV_LATE || late == 0)
        return fd;
    rc = tz_layout_replace_tail(fd, c, plan, late, plan->alone);
    if (rc == ENODATA && plan->alone)
        return recreate(c, fd, rc);
    c->refusal = (uint16_t)rc;
    tz_layout_read(fd, c);
    return fd;
}

/* The file is ours and has been given its layout: what has it really? */
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
    if (verdict == TZ_LOV_LATE)
        return complete(c, plan, fd, late);
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

/* The tail is missing: between its removal and the new one by the rank that replaces it. */
static bool cut_short(const struct tz_create *c, const struct tz_plan *plan)
{
    struct tz_lov_entry last;
    struct tz_lov lov;

    return plan->layout.composite && tz_lov_check(c->scratch->lov, c->lov_length, &lov) == 0 &&
           lov.magic == TZ_LOV_COMPOSITE && lov.entries > 0 && lov.entries < plan->layout.count &&
           tz_lov_entry(c->scratch->lov, c->lov_length, lov.entries - 1, &last) == 0 &&
           last.end == plan->layout.components[lov.entries - 1].end;
}

/* Changed within the last minute, as a file that ranks race to create is. */
static bool is_young(int fd)
{
    struct stat st;

    return syscall(SYS_fstat, fd, &st) == 0 && llabs((long long)(tz_now_ns() / 1000000000) - st.st_ctime) < 60;
}

/*
 * Another rank is still making the objects of its new file. Nobody may write before each component has its objects or
 * falls back by itself: where an OST refuses, the write would fail. Only then, and for a quarter of a second at most,
 * is anything waited for.
 */
static void settle(struct tz_create *c, const struct tz_plan *plan, int fd)
{
    enum tz_lov_verdict verdict = TZ_LOV_LATE;
    uint16_t late = 0;

    for (int i = 0; i < SETTLE_TRIES; i++) {
        struct timespec pause = {0, 1000000L << i};
        int rc = tz_layout_instantiate(fd, last_list_start(&plan->layout), false);

        if (tz_layout_read(fd, c))
            return;
        verdict = tz_lov_compare(c->scratch->lov, c->lov_length, &plan->layout, plan->row.osts, TZ_LISTS_ALL, &late);
        c->outcome = verdict == TZ_LOV_OTHER ? TZ_RACED : TZ_HIT;
        if (verdict == TZ_LOV_AS_ASKED || (verdict == TZ_LOV_OTHER && !cut_short(c, plan)))
            return;
        if (rc == EOPNOTSUPP || rc == ENOSYS) {
            tz_store(&cannot_reserve, 1);
            return;
        }
        syscall(SYS_nanosleep, &pause, NULL);
    }
    if (verdict == TZ_LOV_LATE)
        complete(c, plan, fd, late); /* whoever made the file is gone */
}

/* The name exists: another rank was faster, or the file is old. Its layout stays; one without any gets ours. */
static int join(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists)
{
    int fd = tz_call_open(&c->call, c->call.flags | TZ_DELAY_CREATE), rc;
    enum tz_lov_verdict verdict;
    struct tz_stat st;
    uint16_t late;

    if (fd < 0)
        return tz_call_open(&c->call, c->call.flags);
    c->existence = TZ_EXISTED;
    if (tz_fstat(fd, &st) || !S_ISREG(st.mode))
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
    if (lists == TZ_LISTS_ALL && !plan->alone && (verdict == TZ_LOV_LATE || cut_short(c, plan)) && is_young(fd))
        settle(c, plan, fd);
    return fd;
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
            c->outcome = TZ_REFUSED;
            c->refusal = (uint16_t)errno;
            fd = tz_call_open(&c->call, c->call.flags & ~(O_CREAT | O_EXCL | O_TRUNC));
            if (fd >= 0) {
                c->existence = TZ_FRESH;
                return fd;
            }
            if (errno != ENOENT && lgetxattr(c->call.path, "lustre.lov", NULL, 0) < 0 && errno == ENODATA)
                syscall(SYS_unlinkat, AT_FDCWD, c->call.path, 0); /* or O_EXCL would say that it exists */
            return tz_call_open(&c->call, c->call.flags);
        }
    }
    if (fd < 0)
        fd = tz_call_open(&c->call, flags | TZ_DELAY_CREATE);
    if (fd < 0) {
        if (c->call.flags & O_EXCL)
            return fd;
        return errno == EEXIST ? join(c, plan, lists) : tz_call_open(&c->call, c->call.flags);
    }
    c->existence = TZ_FRESH;
    if (!by_llapi)
        rc = tz_layout_set(fd, plan, lists, c->scratch);
    if (rc == EEXIST) { /* another process opened it in between, which made the default layout */
        tz_layout_read(fd, c);
        c->outcome = TZ_RACED;
        return fd;
    }
    return rc ? refuse(c, fd, rc) : verify(c, plan, fd, lists);
}

int tz_place_open(struct tz_create *c, const struct tz_plan *plan)
{
    int saved = errno, fd = create(c, plan);

    if (fd >= 0)
        errno = saved; /* an open that succeeds leaves it as it was */
    return fd;
}
