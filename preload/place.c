#include "place.h"

#include <sys/mman.h>

enum { RETRY_NS = 20000000, OFF_GENERATION = 16, OFF_STOPPED = 24 };

static struct {
    struct tz_lock lock;
    const uint8_t *control;   /* atomic */
    const struct tz_map *map; /* atomic; earlier maps stay mapped for other threads */
    uint64_t tried_ns;        /* atomic */
    uint64_t bad;             /* atomic: a generation that could not be used */
} current;

static int known_umask = -1; /* atomic */

void tz_map_forked(void)
{
    current.lock.held = 0;
}

static bool build_path(char *out, size_t size, const char *name, uint64_t generation)
{
    size_t length = strlen(tz_config.map), name_length = strlen(name);
    char digits[24];
    int n = 0;

    if (length + name_length + 26 > size)
        return false;
    memcpy(out, tz_config.map, length);
    out[length++] = '/';
    memcpy(out + length, name, name_length);
    length += name_length;
    for (uint64_t v = generation; v; v /= 10)
        digits[n++] = (char)('0' + v % 10);
    while (n)
        out[length++] = digits[--n];
    out[length] = '\0';
    return true;
}

static const uint8_t *open_control(void)
{
    const uint8_t *page = MAP_FAILED;
    char path[1100];
    uint64_t size;
    int fd;

    if (!build_path(path, sizeof path, "control", 0))
        return NULL;
    fd = tz_sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return NULL;
    if (!tz_map_trust(fd, tz_config.trusted_uid, TZ_CONTROL_SIZE, &size))
        page = mmap(NULL, TZ_CONTROL_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    tz_sys_close(fd);
    if (page == MAP_FAILED)
        return NULL;
    if (memcmp(page, "TZCTRL01", 8) == 0 && tz_get32(page + 8) == 1)
        return page;
    munmap((void *)(uintptr_t)page, TZ_CONTROL_SIZE);
    return NULL;
}

/* The control page, looked for at most every 20 ms while it is not there; who comes while it is opened waits for it. */
static const uint8_t *control(void)
{
    const uint8_t *page = tz_load(&current.control);
    uint64_t now;

    if (page)
        return page;
    now = tz_now_ns();
    if (now - tz_load(&current.tried_ns) < RETRY_NS || !tz_owner() || !tz_trylock(&current.lock))
        return NULL;
    page = tz_load(&current.control);
    if (!page) {
        page = open_control();
        if (page)
            tz_store(&current.control, page);
        else
            tz_store(&current.tried_ns, now);
    }
    tz_unlock(&current.lock);
    return page;
}

static void load_map(uint64_t generation)
{
    const struct tz_map *loaded;
    struct tz_map *map;
    char path[1100];

    if (!tz_owner() || !tz_trylock(&current.lock))
        return;
    loaded = tz_load(&current.map);
    if (loaded && loaded->generation == generation) { /* by another thread, while this one waited */
        tz_unlock(&current.lock);
        return;
    }
    map = tz_pages(sizeof *map);
    if (map && build_path(path, sizeof path, "map.", generation) && !tz_map_open(path, tz_config.trusted_uid, map) &&
        map->generation == generation) {
        tz_store(&current.map, map);
    } else {
        if (map)
            tz_map_close(map);
        tz_pages_free(map, sizeof *map);
        tz_store(&current.bad, generation);
    }
    tz_unlock(&current.lock);
}

/* The map to use; NULL with the outcome of a create that has none. */
static const struct tz_map *current_map(uint8_t *outcome)
{
    const uint8_t *page = control();
    const struct tz_map *map;
    uint64_t generation;

    *outcome = TZ_LATE;
    if (!page)
        return NULL;
    if (tz_load((const uint64_t *)(const void *)(page + OFF_STOPPED))) {
        *outcome = TZ_UNMANAGED;
        return NULL;
    }
    generation = tz_load((const uint64_t *)(const void *)(page + OFF_GENERATION));
    if (generation == 0)
        return NULL;
    map = tz_load(&current.map);
    if ((!map || map->generation != generation) && tz_load(&current.bad) != generation) {
        load_map(generation);
        map = tz_load(&current.map);
    }
    if (map && map->expires_s && tz_about_now_s() >= map->expires_s)
        return NULL;
    return map;
}

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

/*
 * A row found by this rank's number, or under this rank's loose name, was only ever used by this rank. A number in the
 * name that happens to be the rank proves nothing.
 */
static bool is_ours(const struct tz_map *map, const struct tz_query *q, const struct tz_row *row, uint8_t found)
{
    if (q->rank < 0)
        return false;
    if (found == TZ_FOUND_PRECISE || found == TZ_FOUND_LOOSE)
        return true;
    return found == TZ_FOUND_EXACT &&
           row->loose_hash == tz_hash_template(map->key, 'L', q->fs, q->fs_length, q->names->loose,
                                               q->names->loose_length, q->rank, q->n_loose);
}

bool tz_place_decide(struct tz_create *c, struct tz_plan *plan)
{
    const struct tz_mount *m = c->where.mount;
    struct tz_query query = {
        m->fs,          c->where.key, m->fs_length, c->where.key_length, &c->scratch->names, tz_config.ident.rank,
        c->nth.precise, c->nth.loose};
    const struct tz_map *map;
    int flags = c->call.flags;

    c->outcome = TZ_UNMANAGED;
    if (!tz_config.map[0])
        return false;
    c->outcome = TZ_SKIPPED;
    if ((flags & TZ_DELAY_CREATE) == TZ_DELAY_CREATE || !owner_may_write(c->call.mode) || !tz_is_lustre(c->where.mount))
        return false;
    map = current_map(&c->outcome);
    if (!map)
        return false;
    c->generation = map->generation;
    c->found = tz_map_lookup(map, &query, &plan->row);
    c->outcome = TZ_MISS;
    if (c->found == TZ_FOUND_NOT)
        return false;
    c->row_id = plan->row.id;
    tz_map_layout(map, plan->row.layout, &plan->layout);
    plan->alone = (flags & O_EXCL) || is_ours(map, &query, &plan->row, c->found);
    c->outcome = TZ_SKIPPED;
    if ((flags & O_APPEND) && !has_list(&plan->layout))
        return false; /* the MDS has a rule of its own for files that are appended to */
    c->outcome = tz_config.mode == TZ_PLACE ? TZ_HIT : TZ_ADVISED;
    return tz_config.mode == TZ_PLACE;
}
