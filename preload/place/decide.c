/* Looking a name up in the map, and what speaks against doing what it says. */
#include "place/decide.h"
#include "base/rawsys.h"
#include "base/text.h"
#include "place/current.h"
#include "place/layout_fd.h"
#include "process/state.h"

static int known_umask = -1; /* atomic */

void tz_umask_set(mode_t mask)
{
    if (tz_owner_quick())
        tz_store(&known_umask, (int)(mask & 0777));
}

/* libc can only tell the umask by changing it; the kernel shows it since 4.7. 022 where it does not. */
static mode_t read_umask(void)
{
    int fd = tz_sys_open("/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
    const char *at;
    char text[128]; /* its second line: behind a name of 15 characters */
    long n;

    if (fd < 0)
        return 022;
    n = syscall(SYS_read, fd, text, sizeof text - 1);
    tz_sys_close(fd);
    text[n > 0 ? n : 0] = '\0';
    at = strstr(text, "\nUmask:");
    if (!at)
        return 022;
    for (at += 7; *at == '\t' || *at == ' '; at++)
        ;
    return (mode_t)tz_read_number(&at, 8);
}

static mode_t get_umask(void)
{
    int mask = tz_load(&known_umask);

    if (mask < 0) {
        mask = (int)read_umask();
        tz_umask_set((mode_t)mask);
    }
    return (mode_t)mask;
}

/* Finds the file's row and layout; what found it. */
static enum tz_found find(const struct tz_create *c, const struct tz_map *map, struct tz_plan *plan)
{
    const struct tz_mount *m = c->where.mount;
    struct tz_query query = {.fs = m->fs,
                             .key = c->where.key,
                             .fs_length = m->fs_length,
                             .key_length = c->where.key_length,
                             .names = &c->scratch->names,
                             .rank = tz_config.ident.rank,
                             .n_precise = c->nth.precise,
                             .n_loose = c->nth.loose};
    enum tz_found found = tz_map_lookup(map, &query, &plan->row);

    if (found != TZ_FOUND_NOT)
        tz_map_layout(map, plan->row.layout, &plan->layout);
    return found;
}

/* A file that its owner may not write can be given no layout (the MDS refuses), and not be opened again either. */
static enum tz_skip why_skipped(const struct tz_create *c)
{
    bool own = (c->call.flags & O_LOV_DELAY_CREATE) == O_LOV_DELAY_CREATE;
    mode_t needed = S_IWUSR | (c->call.flags & O_RDWR ? S_IRUSR : 0); /* also of access 3 */

    if (own)
        return TZ_OWN_LAYOUT;
    if (needed & ~(c->call.mode & ~get_umask()))
        return TZ_NOT_WRITABLE;
    return tz_load(&c->where.mount->foreign) ? TZ_NO_LAYOUTS : (enum tz_skip)0;
}

bool tz_place_decide(struct tz_create *c, struct tz_plan *plan)
{
    const struct tz_map *map;
    int flags = c->call.flags;

    c->outcome = TZ_UNMANAGED;
    if (tz_config.mode == TZ_OBSERVE || !tz_config.map[0])
        return false;
    if (why_skipped(c)) {
        tz_skipped(c, why_skipped(c));
        return false;
    }
    c->outcome = TZ_LATE;
    map = tz_current_map(c->scratch, &c->said);
    if (!map)
        return false;
    c->generation = map->generation;
    c->found = find(c, map, plan);
    c->outcome = TZ_MISS;
    if (c->found == TZ_FOUND_NOT)
        return false;
    c->row_id = plan->row.id;
    c->shared = plan->layout.shared;
    if ((flags & O_APPEND) && !tz_layout_last_list(&plan->layout)) {
        tz_skipped(c, TZ_APPENDED); /* the MDS has a rule of its own for files that are appended to */
        return false;
    }
    c->outcome = tz_config.mode == TZ_PLACE ? TZ_HIT : TZ_ADVISED;
    return tz_config.mode == TZ_PLACE;
}

enum tz_found tz_place_find(struct tz_create *c, struct tz_plan *plan)
{
    const struct tz_map *map;

    if (tz_config.mode != TZ_PLACE || !tz_config.map[0] || !tz_scratch_need(&c->scratch))
        return TZ_FOUND_NOT;
    map = tz_current_map(c->scratch, &c->said);
    if (!map)
        return TZ_FOUND_NOT;
    tz_template(c->where.key, c->where.key_length, &tz_config.ident, &c->scratch->names);
    return find(c, map, plan);
}
