#include "place.h"

static int known_umask = -1; /* atomic */

void tz_umask_set(mode_t mask)
{
    if (tz_owner_quick())
        tz_store(&known_umask, (int)(mask & 0777));
}

/* libc can only tell the umask by changing it; the kernel shows it since 4.7. 022 where it does not. */
static int read_umask(void)
{
    int fd = tz_sys_open("/proc/self/status", O_RDONLY | O_CLOEXEC, 0), mask = 022;
    char text[512], *at;
    long n;

    if (fd < 0)
        return mask;
    n = syscall(SYS_read, fd, text, sizeof text - 1);
    tz_sys_close(fd);
    if (n <= 0)
        return mask;
    text[n] = '\0';
    at = strstr(text, "\nUmask:");
    if (!at)
        return mask;
    for (at += 7; *at == '\t' || *at == ' '; at++)
        ;
    for (mask = 0; *at >= '0' && *at <= '7'; at++)
        mask = mask * 8 + (*at - '0');
    return mask;
}

/* A file that its owner may not write can be given no layout (the MDS refuses), and not be opened again either. */
static bool owner_may_write(mode_t mode)
{
    int mask = tz_load(&known_umask);

    if (mask < 0) {
        mask = read_umask();
        tz_umask_set((mode_t)mask);
    }
    return (mode & ~(mode_t)mask & S_IWUSR) != 0;
}

static bool has_list(const struct tz_layout *layout)
{
    for (uint16_t i = 0; i < layout->count; i++)
        if (layout->components[i].flags & TZ_COMP_LIST)
            return true;
    return false;
}

static struct tz_query query_of(const struct tz_create *c)
{
    const struct tz_mount *m = c->where.mount;

    return (struct tz_query){
        m->fs,          c->where.key, m->fs_length, c->where.key_length, &c->scratch->names, tz_config.ident.rank,
        c->nth.precise, c->nth.loose};
}

bool tz_place_decide(struct tz_create *c, struct tz_plan *plan)
{
    struct tz_query query = query_of(c);
    const struct tz_map *map;
    int flags = c->call.flags;

    c->outcome = TZ_UNMANAGED;
    if (tz_config.mode == TZ_OBSERVE || !tz_config.map[0])
        return false;
    c->outcome = TZ_SKIPPED;
    if ((flags & O_LOV_DELAY_CREATE) == O_LOV_DELAY_CREATE || !owner_may_write(c->call.mode) ||
        tz_load(&c->where.mount->foreign))
        return false;
    map = tz_current_map(c, &c->outcome);
    if (!map)
        return false;
    c->generation = map->generation;
    c->found = tz_map_lookup(map, &query, &plan->row);
    c->outcome = TZ_MISS;
    if (c->found == TZ_FOUND_NOT)
        return false;
    c->row_id = plan->row.id;
    tz_map_layout(map, plan->row.layout, &plan->layout);
    c->outcome = TZ_SKIPPED;
    if ((flags & O_APPEND) && !has_list(&plan->layout))
        return false; /* the MDS has a rule of its own for files that are appended to */
    c->outcome = tz_config.mode == TZ_PLACE ? TZ_HIT : TZ_ADVISED;
    return tz_config.mode == TZ_PLACE;
}

void tz_place_opened(struct tz_create *c, int fd)
{
    const struct tz_map *map;
    struct tz_query query;
    struct tz_plan plan;
    uint8_t none;

    if (tz_config.mode != TZ_PLACE || !tz_config.map[0] || tz_config.hints || tz_load(&c->where.mount->foreign) ||
        (c->call.flags & O_ACCMODE) == O_RDONLY)
        return;
    if (!c->scratch && !(c->scratch = tz_scratch_get()))
        return;
    map = tz_current_map(c, &none);
    if (!map)
        return;
    tz_template(c->where.key, c->where.key_length, &tz_config.ident, &c->scratch->names);
    query = query_of(c);
    if (tz_map_lookup(map, &query, &plan.row) == TZ_FOUND_NOT)
        return;
    tz_map_layout(map, plan.row.layout, &plan.layout);
    if (tz_layout_has_late_lists(&plan.layout) && tz_layout_read(fd, c) == 0)
        tz_place_settle(c, &plan, fd);
}
