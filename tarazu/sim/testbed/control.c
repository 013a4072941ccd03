/* What the testbed's Python side calls through ctypes: make the state, read and set it, account for files. */
#include "tb.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Makes DIR/mds/state for `osts` targets; `oss_of[i]` serves target i. Returns 0 or a negative errno. */
PUBLIC int testbed_format(const char *dir, uint32_t osts, uint32_t osss, const uint32_t *oss_of, uint64_t seed)
{
    static struct tb_state fresh;
    pthread_mutexattr_t attributes;
    char path[PATH_MAX];
    uint16_t members[TB_MAX_OSTS];
    int fd, rc;

    if (osts == 0 || osts > TB_MAX_OSTS || osss == 0 || osss > TB_MAX_OSSS)
        return -EINVAL;
    memset(&fresh, 0, sizeof(fresh));
    memcpy(fresh.magic, TB_STATE_MAGIC, 8);
    fresh.version = TB_STATE_VERSION;
    fresh.n_osts = osts;
    fresh.n_osss = osss;
    fresh.rng = seed;
    fresh.keep_bytes = 65536;
    fresh.threshold_rr = 17 * 256 / 100;
    fresh.prio_free = 90 * 256 / 100;
    fresh.default_stripe_count = 1;
    fresh.default_stripe_size = 4u << 20;
    fresh.next_file_oid = 1;
    fresh.qos_dirty = fresh.qos_reset = 1;
    fresh.n_mdts = 1;
    for (uint32_t i = 0; i < osts; i++) {
        fresh.ost[i].oss = oss_of[i];
        fresh.oss[oss_of[i]].targets++;
        members[i] = i;
    }
    for (uint32_t s = 0; s < osss; s++)
        fresh.oss_order[s] = s;
    tb_targets_set(&fresh.rr, members, osts);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&fresh.lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    snprintf(path, sizeof(path), "%s/mds/state", dir);
    fd = real_open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (fd < 0)
        return -errno;
    rc = syscall(SYS_write, fd, &fresh, sizeof(fresh)) == (ssize_t)sizeof(fresh) ? 0 : -EIO;
    syscall(SYS_fchmod, fd, 0666);
    real_close(fd);
    return rc;
}

/* From now on this process works on the testbed in DIR. */
PUBLIC int testbed_attach(const char *dir)
{
    return tb_attach_to(dir);
}

/* For tests: takes the lock and keeps it, as a process that is killed inside would. */
PUBLIC void testbed_hold_lock(void)
{
    tb_lock();
}

static uint64_t *wide_field(const char *name, uint32_t index)
{
    static const struct {
        const char *name;
        size_t offset;
    } of_ost[] =
        {
            {"total", offsetof(struct tb_ost, total)},
            {"base", offsetof(struct tb_ost, base)},
            {"used", offsetof(struct tb_ost, used)},
            {"weight", offsetof(struct tb_ost, weight)},
            {"weighed", offsetof(struct tb_ost, weighed)},
            {"penalty", offsetof(struct tb_ost, penalty)},
            {"penalty_per_obj", offsetof(struct tb_ost, penalty_per_obj)},
            {"last_used", offsetof(struct tb_ost, last_used)},
            {"disk_rate", offsetof(struct tb_ost, disk_rate)},
        },
      of_oss[] = {
          {"oss_avail", offsetof(struct tb_oss, avail)},
          {"oss_penalty", offsetof(struct tb_oss, penalty)},
          {"oss_penalty_per_obj", offsetof(struct tb_oss, penalty_per_obj)},
          {"oss_last_used", offsetof(struct tb_oss, last_used)},
      };

    for (unsigned i = 0; index < tb_state->n_osts && i < sizeof(of_ost) / sizeof(*of_ost); i++)
        if (strcmp(name, of_ost[i].name) == 0)
            return (uint64_t *)((char *)&tb_state->ost[index] + of_ost[i].offset);
    for (unsigned i = 0; index < tb_state->n_osss && i < sizeof(of_oss) / sizeof(*of_oss); i++)
        if (strcmp(name, of_oss[i].name) == 0)
            return (uint64_t *)((char *)&tb_state->oss[index] + of_oss[i].offset);
    if (strcmp(name, "keep_bytes") == 0)
        return &tb_state->keep_bytes;
    if (strcmp(name, "disk_request_ns") == 0)
        return &tb_state->disk_request_ns;
    return strcmp(name, "rng") == 0 ? &tb_state->rng : NULL;
}

static uint32_t *narrow_field(const char *name, uint32_t index)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {
        {"sparse", offsetof(struct tb_state, sparse)},
        {"threshold_rr", offsetof(struct tb_state, threshold_rr)},
        {"prio_free", offsetof(struct tb_state, prio_free)},
        {"stripe_count", offsetof(struct tb_state, default_stripe_count)},
        {"stripe_size", offsetof(struct tb_state, default_stripe_size)},
        {"epoch", offsetof(struct tb_state, epoch)},
        {"osts", offsetof(struct tb_state, n_osts)},
        {"rr_start_idx", offsetof(struct tb_state, rr.start_idx)},
        {"rr_offset_idx", offsetof(struct tb_state, rr.offset_idx)},
        {"rr_start_count", offsetof(struct tb_state, rr.start_count)},
    };

    if (strcmp(name, "flags") == 0 && index < tb_state->n_osts)
        return &tb_state->ost[index].flags;
    for (unsigned i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (strcmp(name, fields[i].name) == 0)
            return (uint32_t *)((char *)tb_state + fields[i].offset);
    return NULL;
}

static void count_dead(void)
{
    uint32_t dead = 0;

    for (uint32_t i = 0; i < tb_state->n_osts; i++)
        dead += (tb_state->ost[i].flags & OST_DEAD) != 0;
    tb_state->dead = dead;
}

/* Mode and penalties are computed anew at the next creation, not only 10 s after the last time. */
PUBLIC void testbed_look(void)
{
    tb_lock();
    tb_state->qos_dirty = 1;
    tb_unlock();
}

/* Fields by name, indexed where they belong to a target. -EINVAL for an unknown one. What is used is seen in time. */
PUBLIC int testbed_set(const char *name, uint32_t index, uint64_t value)
{
    uint64_t *wide = wide_field(name, index);
    uint32_t *narrow = wide ? NULL : narrow_field(name, index);
    bool changes = wide ? *wide != value : !narrow || *narrow != value;
    int rc = 0;

    tb_lock();
    if (strcmp(name, "used") == 0)
        tb_state->qos_changed |= changes;
    else
        tb_state->qos_dirty |= changes;
    if (wide)
        *wide = value;
    else if (narrow) {
        *narrow = value;
        if (strcmp(name, "flags") == 0)
            count_dead();
    } else if (strcmp(name, "oss_order") == 0 && index < tb_state->n_osss && value < tb_state->n_osss)
        tb_state->oss_order[index] = value;
    else
        rc = -EINVAL;
    if (strcmp(name, "oss_order") == 0)
        tb_state->rr.dirty = 1;
    tb_unlock();
    return rc;
}

PUBLIC int testbed_get(const char *name, uint32_t index, uint64_t *value)
{
    uint64_t *wide = wide_field(name, index);
    uint32_t *narrow = wide ? NULL : narrow_field(name, index);

    if (!wide && !narrow)
        return -EINVAL;
    *value = wide ? *wide : *narrow;
    return 0;
}

/* How many requests of each kind (enum tb_request) clients have sent since the testbed was made. */
PUBLIC int testbed_requests(uint64_t *counts)
{
    if (!tb_state)
        return -ENODEV;
    for (int i = 0; i < TB_REQUESTS; i++)
        counts[i] = __atomic_load_n(&tb_state->requests[i], __ATOMIC_RELAXED);
    return TB_REQUESTS;
}

/* Sets the default layout of a directory from a lustre.lov blob; a blob of all defaults removes it. */
PUBLIC int testbed_set_default(const char *path, const void *blob, size_t size)
{
    int rc, fd = real_open(path, O_PATH | O_DIRECTORY, 0);

    if (fd < 0)
        return -errno;
    rc = layout_set_dir(fd, blob, size);
    real_close(fd);
    return rc;
}

/* The lustre.lov blob of a file or directory as fgetxattr would show it; its length or a negative errno. */
PUBLIC ssize_t testbed_layout(const char *path, void *buffer, size_t capacity)
{
    int fd = real_open(path, O_PATH | O_NOFOLLOW, 0);
    ssize_t rc;

    if (fd < 0)
        return -errno;
    rc = layout_get(fd, buffer, capacity);
    real_close(fd);
    return rc;
}

static void add_objects(const struct tb_layout *layout, uint64_t size, uint64_t *bytes, uint32_t *objects)
{
    for (unsigned c = 0; c < layout->n_comps; c++) {
        const struct tb_comp *comp = &layout->comp[c];
        uint64_t end = comp->end < size ? comp->end : size;

        if (!(comp->flags & LCME_FL_INIT) || (comp->pattern & LOV_PATTERN_MDT) || comp->stripe_count == 0)
            continue;
        for (unsigned s = 0; s < comp->stripe_count; s++) {
            objects[comp->ost[s]]++;
            if (end > comp->start)
                bytes[comp->ost[s]] += layout_bytes_below(end, comp, s) - layout_bytes_below(comp->start, comp, s);
        }
    }
}

/* Adds to bytes[client][ost] and objects[ost] what one file holds there; clients from `clients` on count as 0, which
 * nobody is. A file that grew by ways that are not interposed gets the components that it needs first. Returns the
 * file's size, or a negative errno. */
PUBLIC int64_t testbed_account(const char *path, uint32_t clients, uint64_t *bytes, uint32_t *objects)
{
    struct tb_layout *layout = layout_scratch(2);
    int fd = real_open(path, O_PATH | O_NOFOLLOW, 0);
    uint64_t covered, size;
    struct stat st;
    int rc;

    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            real_close(fd);
        return fd < 0 ? -errno : -EINVAL;
    }
    size = st.st_size;
    tb_lock();
    rc = sidecar_load(fd, layout);
    if (rc == -ENODATA && size > 0)
        rc = layout_ensure_default(fd, &st);
    if (rc == 0 && size > 0 && layout_cover(fd, size, false, &covered) == 0)
        rc = sidecar_load(fd, layout);
    if (rc == 0)
        add_objects(layout, size, bytes + (size_t)tb_state->n_osts * (layout->client < clients ? layout->client : 0),
                    objects);
    tb_unlock();
    real_close(fd);
    return rc && rc != -ENODATA ? rc : (int64_t)size;
}
