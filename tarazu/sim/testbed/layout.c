/* What the MDS does with a layout: setting it, changing it, and instantiating what a write reaches. */
#include "tb.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Self-extending components: the one before takes what it needs from the extension space, in whole units. */
static void extend(struct tb_layout *layout, unsigned i, uint64_t end)
{
    struct tb_comp *space = &layout->comp[i];
    uint64_t unit = space->stripe_size * SEL_UNIT_SIZE, start = space->start, units;

    if (unit == 0)
        unit = LOV_MIN_STRIPE_SIZE;
    units = (end - start + unit - 1) / unit;
    if (units > (space->end - start) / unit)
        start = space->end;
    else
        start += units * unit;
    layout->comp[i - 1].end = start;
    space->start = start;
    if (space->start >= space->end) {
        memmove(space, space + 1, (layout->n_comps - i - 1) * sizeof(*space));
        layout->n_comps--;
    }
}

/* Instantiates every component that begins below `end`, also those before the write. */
static int instantiate(struct tb_layout *layout, uint64_t end, bool default_layout, bool *changed)
{
    for (unsigned i = 0; i < layout->n_comps && (i == 0 || layout->comp[i].start < end); i++) {
        struct tb_comp *comp = &layout->comp[i];
        uint16_t wanted;
        int rc;

        if (comp->flags & LCME_FL_EXTENSION) {
            extend(layout, i, end);
            *changed = true;
            i--;
            continue;
        }
        if (comp->flags & LCME_FL_INIT)
            continue;
        wanted = comp->stripe_count;
        rc = lsa_allocate(layout, i, default_layout);
        if (rc) {
            comp->stripe_count = wanted;
            return rc;
        }
        comp->flags |= LCME_FL_INIT;
        layout->gen += layout->composite;
        *changed = true;
    }
    return 0;
}

static int create(int fd, const struct stat *st, struct tb_layout *layout, bool default_layout)
{
    bool changed = false;
    int rc;

    layout_fill_defaults(layout);
    layout->file_oid = tb_state->next_file_oid++;
    layout->client = tb_client();
    layout->gen = layout->composite;
    rc = instantiate(layout, st->st_size + (st->st_size == 0), default_layout, &changed);
    return rc ? rc : sidecar_store(fd, layout, true);
}

int layout_set(int fd, const struct stat *st, const void *data, size_t size, enum tb_via via)
{
    struct tb_layout *layout = layout_scratch(0), *other = layout_scratch(1);
    const char *pool = NULL;
    int rc = layout_may_change(st);

    if (rc)
        return rc;
    tb_lock();
    rc = sidecar_load(fd, other);
    if (rc && rc != -ENODATA)
        goto out;
    /* The client opens the file by its intent and releases that again. */
    tb_request(TO_MDS_OPEN, 1);
    tb_request(TO_MDS_CLOSE, 1);
    if (rc == 0) {
        rc = via == VIA_IOCTL ? -EEXIST : 0; /* fsetxattr ignores it silently */
        goto out;
    }
    rc = blob_decode(data, size, layout, BLOB_USER);
    if (rc)
        goto out;
    /* It gives up the lock that it has had since the file was made; the file's privileges it fetches at the next write,
     * and the layout where a descriptor was opened before. */
    tb_request(TO_MDS_CANCEL, 1);
    tb_request(TO_MDS_GETXATTR, 1);
    if (sidecar_default_for(fd, other) == 0 && other->comp[0].pool[0])
        pool = other->comp[0].pool;
    rc = layout_check(layout, 0, pool);
    if (rc == 0)
        rc = create(fd, st, layout, false);
out:
    tb_unlock();
    handle_forget(fd);
    return rc;
}

int layout_set_dir(int fd, const void *data, size_t size)
{
    struct tb_layout *layout = layout_scratch(0);
    struct stat st;
    int rc;

    if (fstat(fd, &st) != 0)
        return -errno;
    if (geteuid() != 0 && geteuid() != st.st_uid)
        return -EPERM;
    tb_lock();
    rc = blob_decode(data, size, layout, BLOB_USER);
    if (rc == 0 && !layout->composite && layout->comp[0].stripe_size == 0 && layout->comp[0].stripe_count == 0 &&
        layout->comp[0].hint == LOV_OFFSET_DEFAULT &&
        layout->comp[0].pool[0] == 0) { /* all defaults = delete, as lfs setstripe -d does */
        rc = sidecar_remove(fd);
        rc = rc == -ENOENT ? 0 : rc;
    } else if (rc == 0 && (rc = layout_check(layout, 0, NULL)) == 0) {
        layout->file_oid = tb_state->next_file_oid++;
        layout->client = 0;
        rc = sidecar_store(fd, layout, false);
    }
    tb_unlock();
    return rc;
}

int layout_add(int fd, const struct stat *st, const void *data, size_t size)
{
    struct tb_layout *layout = layout_scratch(0), *more = layout_scratch(1);
    unsigned id = 0;
    int rc = layout_may_change(st);

    if (rc)
        return rc;
    tb_request(TO_MDS_SETXATTR, 1);
    tb_lock();
    rc = sidecar_load(fd, layout);
    if (rc == 0)
        rc = blob_decode(data, size, more, BLOB_USER);
    if (rc == 0 && (!layout->composite || !more->composite || layout->n_comps + more->n_comps > TB_MAX_COMPS))
        rc = -EINVAL;
    if (rc == 0)
        rc = layout_check(more, layout->comp[layout->n_comps - 1].end, NULL);
    if (rc == 0) {
        layout_fill_defaults(more);
        for (unsigned i = 0; i < layout->n_comps; i++)
            id = layout->comp[i].id > id ? layout->comp[i].id : id;
        for (unsigned i = 0; i < more->n_comps; i++) {
            layout->comp[layout->n_comps] = more->comp[i];
            layout->comp[layout->n_comps++].id = ++id;
        }
        layout->gen++;
        tb_state->epoch++;
        rc = sidecar_store(fd, layout, true);
    }
    tb_unlock();
    return rc;
}

/* `data` is a composite of one entry: the id of a component, or flags (LCME_FL_NEG | flags: those without them). */
int layout_del(int fd, const struct stat *st, const void *data, size_t size)
{
    struct tb_layout *layout = layout_scratch(0);
    struct lov_part what;
    unsigned left;
    int rc = layout_may_change(st);

    if (rc)
        return rc;
    if (lov_read_part(data, size, 0, &what) || (what.id == 0) == (what.flags == 0))
        return -EINVAL;
    tb_request(TO_MDS_SETXATTR, 1);
    tb_lock();
    rc = sidecar_load(fd, layout);
    if (rc == 0 && !layout->composite)
        rc = -EINVAL;
    left = layout->n_comps;
    for (int i = rc ? -1 : (int)layout->n_comps - 1; i >= 0; i--) {
        uint32_t has = layout->comp[i].flags;
        bool match = what.id                    ? what.id == layout->comp[i].id
                     : what.flags & LCME_FL_NEG ? !(what.flags & ~LCME_FL_NEG & has)
                                                : (what.flags & has) != 0;

        if (!match)
            continue;
        if (left != (unsigned)i + 1)
            rc = -EINVAL; /* it would leave a hole */
        left--;
    }
    if (rc == 0 && (left == layout->n_comps || left == 0))
        rc = -EINVAL;
    if (rc == 0) {
        layout->n_comps = left;
        layout->gen++;
        tb_state->epoch++;
        rc = sidecar_store(fd, layout, true);
    }
    tb_unlock();
    return rc;
}

/* True when a byte of [from, to) lies in an object on a server that is gone. */
static bool on_dead(const struct tb_comp *comp, uint64_t from, uint64_t to)
{
    uint64_t first, stripes;

    if (!(comp->flags & LCME_FL_INIT) || comp->stripe_count == 0 || comp->stripe_size == 0)
        return false;
    from = from > comp->start ? from : comp->start;
    to = to < comp->end ? to : comp->end;
    if (from >= to)
        return false;
    first = from / comp->stripe_size;
    stripes = (to - 1) / comp->stripe_size - first + 1;
    for (uint64_t i = 0; i < stripes && i < comp->stripe_count; i++)
        if (tb_state->ost[comp->ost[(first + i) % comp->stripe_count]].flags & OST_DEAD)
            return true;
    return false;
}

bool layout_reaches_dead(int fd, uint64_t from, uint64_t to)
{
    struct tb_layout *layout = layout_scratch(0);
    bool reaches = false;

    tb_lock();
    if (sidecar_load(fd, layout) == 0)
        for (unsigned i = 0; i < layout->n_comps; i++)
            reaches |= on_dead(&layout->comp[i], from, to);
    tb_unlock();
    return reaches;
}

/* Of what lies below `offset` in the file, how much this stripe of a component holds. */
uint64_t layout_bytes_below(uint64_t offset, const struct tb_comp *comp, unsigned stripe)
{
    uint64_t size = comp->stripe_size, width = size * comp->stripe_count, rest = offset % width, mine = 0;

    if (rest > stripe * size)
        mine = rest - stripe * size < size ? rest - stripe * size : size;
    return offset / width * size + mine;
}

/* Stripes of the last component, 1 where that is not known. */
unsigned layout_last_count(int fd)
{
    struct tb_layout *layout = layout_scratch(0);
    unsigned count = 0;

    tb_lock();
    if (sidecar_load(fd, layout) == 0)
        count = layout->comp[layout->n_comps - 1].stripe_count;
    tb_unlock();
    return count ? count : 1;
}

ssize_t layout_get(int fd, void *buffer, size_t capacity)
{
    struct tb_layout *layout = layout_scratch(0);
    struct stat st;
    ssize_t rc;

    tb_lock();
    rc = sidecar_load(fd, layout);
    if (fstat(fd, &st) != 0)
        rc = -errno;
    if (rc == -ENODATA && S_ISDIR(st.st_mode))
        rc = sidecar_of_root(layout);
    if (rc == 0)
        rc = blob_encode(layout, buffer, capacity, S_ISREG(st.st_mode));
    tb_unlock();
    return rc;
}

/* A file that was opened to be written, or created, and has no layout: the default, by Lustre's allocator. */
int layout_ensure_default(int fd, const struct stat *st)
{
    struct tb_layout *layout = layout_scratch(0);
    int rc;

    tb_lock();
    rc = sidecar_load(fd, layout);
    if (rc == -ENODATA) {
        bool inherited = sidecar_default_for(fd, layout) == 0;

        if (!inherited) {
            memset(&layout->comp[0], 0, offsetof(struct tb_comp, list));
            layout->composite = 0;
            layout->n_comps = 1;
            layout->comp[0].end = LUSTRE_EOF;
            layout->comp[0].pattern = LOV_PATTERN_RAID0;
            layout->comp[0].hint = LOV_OFFSET_DEFAULT;
        }
        rc = create(fd, st, layout, true);
    }
    tb_unlock();
    return rc;
}

/* Before a write that ends at `end` (or a truncate to it): instantiate what it reaches. -ENODATA: no layout at all.
 * `covered` becomes the offset below which later writes need not ask again. */
int layout_cover(int fd, uint64_t end, bool truncate, uint64_t *covered)
{
    struct tb_layout *layout = layout_scratch(0);
    bool changed = false;
    int rc;

    tb_lock();
    rc = sidecar_load(fd, layout);
    if (rc == 0 && end > layout->comp[layout->n_comps - 1].end)
        rc = -EINVAL;
    if (rc == 0) {
        int refused = instantiate(layout, truncate ? end + 1 : end, false, &changed);

        if (changed || refused)
            tb_request(TO_MDS_LAYOUT, 1);
        if (changed)
            rc = sidecar_store(fd, layout, true);
        if (refused && !truncate)
            rc = refused; /* a truncate succeeds, the component stays uninstantiated */
    }
    *covered = 0;
    for (unsigned i = 0; rc == 0 && i < layout->n_comps && (layout->comp[i].flags & LCME_FL_INIT); i++)
        *covered = layout->comp[i].end;
    tb_unlock();
    return rc;
}
