/*
 * The open of a placed file on a CephFS: the map names a data pool by its id, and `ceph.file.layout.pool` sets it. The
 * file is created with O_EXCL, so that it is known who made it; only its maker sets the pool, and the MDS refuses that
 * for a file in which anybody has written. A file has a pool from the start, so that others can use it at any moment.
 *
 * The MDS answers a set at once and keeps the file locked until its journal is on disk, which an idle one writes every
 * five seconds: nobody could write meanwhile. fsync has it written; fdatasync does not, nor does reading the layout.
 */
#include "place/ceph.h"
#include "base/cancel.h"
#include "base/hash.h"
#include "base/rawsys.h"
#include "core/lov_request.h"

#include <sys/xattr.h>

#define XATTR_POOL "ceph.file.layout.pool"
#define XATTR_POOL_ID "ceph.file.layout.pool_id"

enum { KEEP_SIZE = 1, POOL_NAME_MAX = 256, ERRNO_BITS = 16 };

static int set_pool(int fd, const char *pool)
{
    if (fsetxattr(fd, XATTR_POOL, pool, strlen(pool), 0))
        return errno;
    syscall(SYS_fsync, fd);
    return 0;
}

static void put_decimal(char out[8], uint16_t value)
{
    char digits[8];
    int n = 0, length = 0;

    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        out[length++] = digits[--n];
    out[length] = '\0';
}

/*
 * Whether a file of this pool can be written to by this client, which the MDS does not know: its key may have no rights
 * there, the pool may be full. A byte is reserved, which on CephFS changes nothing. Of who cannot say it is believed.
 */
static int try_pool(int fd)
{
    int error = fallocate(fd, KEEP_SIZE, 0, 1) ? errno : 0;

    return error == EPERM || error == EACCES || error == ENOSPC ? error : 0;
}

/* The pool that the file has, as it can be set again. True where it is `id`, of which not every client tells. */
static bool look_up(int fd, const char *id, char former[POOL_NAME_MAX])
{
    ssize_t length = fgetxattr(fd, XATTR_POOL_ID, former, POOL_NAME_MAX - 1);
    bool by_id = length > 0;

    if (!by_id)
        length = fgetxattr(fd, XATTR_POOL, former, POOL_NAME_MAX - 1);
    former[length > 0 ? length : 0] = '\0';
    return by_id && strcmp(former, id) == 0;
}

/*
 * 0 or an errno, with the pool that the file had at first; that needs not be set. Where others are expected to open the
 * file it is not tried out: one that writes meanwhile would find that its pool cannot be used. The step's leader has
 * tried it out.
 */
static int give_pool(struct tz_create *c, int fd, uint16_t pool)
{
    bool tries = !c->shared && (c->call.flags & O_ACCMODE) != O_RDONLY && !(c->call.mode & (S_ISUID | S_ISGID));
    char id[8], former[POOL_NAME_MAX];
    int error;

    put_decimal(id, pool);
    if (look_up(fd, id, former))
        return 0;
    error = set_pool(fd, id);
    if (error || !tries || !former[0])
        return error;
    error = try_pool(fd);
    if (error)
        set_pool(fd, former);
    if (error && error != ENOSPC)
        tz_store(&c->where.mount->barred, (uint64_t)pool << 32 | (uint32_t)error);
    return error;
}

/*
 * A client's rights may differ by directory. Of each that refuses a pool it is known where a later one has not taken
 * its place; then it is asked once more.
 */
static uint64_t *refusing(const struct tz_create *c, uint64_t *directory)
{
    const char *last = memrchr(c->where.key, '/', c->where.key_length);

    *directory = tz_hash_text(c->where.key, last ? (size_t)(last - c->where.key) : 0, 0);
    return &c->where.mount->refusing[*directory % TZ_REFUSING];
}

static void note_refusing(const struct tz_create *c, int error)
{
    uint64_t directory, *slot = refusing(c, &directory);

    tz_store(slot, directory >> ERRNO_BITS << ERRNO_BITS | (uint16_t)error);
}

/* What the MDS took, in the form in which all layouts are recorded. */
static void note(struct tz_create *c, const struct tz_plan *plan, uint16_t pool)
{
    struct tz_component whole = plan->layout.components[0];
    struct tz_layout layout = {.components = &whole, .count = 1};

    whole.flags = TZ_COMP_LIST;
    whole.stripe_count = 1;
    whole.first_ost = 0;
    c->lov_length =
        (uint32_t)tz_lov_request(&layout, &pool, 1, 0, TZ_LISTS_ALL, c->scratch->lov, sizeof c->scratch->lov);
    c->outcome = TZ_HIT;
}

static void refused(struct tz_create *c, int error)
{
    c->outcome = TZ_REFUSED;
    c->refusal = (uint16_t)error;
}

/* The file at `fd` is ours. */
static void place(struct tz_create *c, const struct tz_plan *plan, int fd, uint16_t pool)
{
    struct tz_mount *mount = c->where.mount;
    int error = give_pool(c, fd, pool);
    struct tz_stat st;

    if (error == 0) {
        note(c, plan, pool);
    } else if (error == ENOTEMPTY || error == EEXIST) {
        c->outcome = TZ_RACED; /* somebody has written already */
    } else if (error == EOPNOTSUPP || error == ENOTTY || error == ENOSYS) {
        tz_store(&mount->foreign, 1);
        tz_skipped(c, TZ_NO_LAYOUTS);
    } else {
        refused(c, error);
        /* The key of this client lacks `p` here, unless an access list of the directory made the file read-only. */
        if ((error == EACCES || error == EPERM) && tz_load(&mount->barred) >> 32 != pool && tz_look(fd, &st) == 0 &&
            (st.mode & S_IWUSR))
            note_refusing(c, error);
    }
}

/* Why it need not be tried; 0 where it may be. */
static int known_refusal(const struct tz_create *c, uint16_t pool)
{
    uint64_t barred = tz_load(&c->where.mount->barred), directory, known;

    if (barred && barred >> 32 == pool)
        return (int)(uint32_t)barred;
    known = tz_load(refusing(c, &directory));
    return known && (known ^ directory) >> ERRNO_BITS == 0 ? (int)(uint16_t)known : 0;
}

static int join(struct tz_create *c, int fd)
{
    if (fd >= 0) {
        c->existence = TZ_EXISTED;
        c->outcome = TZ_RACED;
    }
    return fd;
}

static int create(struct tz_create *c, const struct tz_plan *plan, uint16_t pool)
{
    const struct tz_call *call = &c->call;
    bool exclusive = call->flags & O_EXCL;
    int fd = -1, cancels;

    if (c->shared && !exclusive) { /* most of its openers find it there */
        fd = tz_call_open(call, call->flags & ~O_CREAT);
        if (fd >= 0)
            return join(c, fd);
        if (errno != ENOENT)
            return tz_call_open(call, call->flags);
    }
    fd = tz_call_open(call, call->flags | O_EXCL);
    if (fd < 0 && exclusive)
        return -1;
    if (fd < 0)
        return errno == EEXIST ? join(c, tz_call_open(call, call->flags)) : tz_call_open(call, call->flags);
    c->existence = TZ_FRESH;
    cancels = tz_cancels_hold();
    place(c, plan, fd, pool);
    tz_cancels_allow(cancels);
    return fd;
}

int tz_ceph_open(struct tz_create *c, const struct tz_plan *plan)
{
    const struct tz_layout *layout = &plan->layout;
    int saved = errno, error, fd;
    uint16_t pool;

    c->outcome = TZ_SKIPPED;
    if (layout->count != 1 || layout->components[0].first_ost >= plan->row.ost_count)
        return tz_call_open(&c->call, c->call.flags); /* a file lies in one pool */
    pool = plan->row.osts[layout->components[0].first_ost];
    error = known_refusal(c, pool);
    if (error) {
        refused(c, error);
        return tz_call_open(&c->call, c->call.flags);
    }
    fd = create(c, plan, pool);
    if (fd >= 0)
        errno = saved; /* an open that succeeds leaves it as it was */
    return fd;
}
