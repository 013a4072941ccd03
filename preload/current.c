/* The current placement map of this process: the control page says which, and it is mapped and kept while it is used.
 */
#include "place.h"
#include "stop.h"

#include <sys/mman.h>

enum { RETRY_NS = 20000000, OFF_GENERATION = 16, OFF_STOPPED = 24, OFF_SITE_STOPPED = 32, RETIRED = 8 };

static struct {
    struct tz_lock lock;
    const uint8_t *control;          /* atomic */
    struct tz_map *map;              /* atomic */
    struct tz_map *retired[RETIRED]; /* earlier ones that a thread may still read */
    uint64_t tried_ns;               /* atomic */
    uint64_t bad;                    /* atomic: a generation that could not be used */
} current;

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

/* Under the lock: closes earlier maps that nobody reads any more. One that does not fit stays mapped. */
static void retire(struct tz_map *old)
{
    for (int i = 0; i < RETIRED; i++) {
        struct tz_map *unused = current.retired[i];

        if (unused && !tz_scratch_holds(unused)) {
            current.retired[i] = NULL; /* first: a child may be forked at any moment */
            tz_map_close(unused);
            tz_pages_free(unused, sizeof *unused);
        }
        if (!current.retired[i] && old) {
            current.retired[i] = old;
            old = NULL;
        }
    }
}

static void load_map(uint64_t generation)
{
    struct tz_map *map, *loaded;
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
        __atomic_store_n(&current.map, map, __ATOMIC_SEQ_CST);
        retire(loaded);
    } else {
        if (map)
            tz_map_close(map);
        tz_pages_free(map, sizeof *map);
        tz_store(&current.bad, generation);
    }
    tz_unlock(&current.lock);
}

/* The map that is loaded, held by the scratch: who retires maps looks there. */
static const struct tz_map *hold(struct tz_scratch *scratch)
{
    const struct tz_map *map;

    do {
        map = tz_load(&current.map);
        __atomic_store_n(&scratch->map, map, __ATOMIC_SEQ_CST);
    } while (map != __atomic_load_n(&current.map, __ATOMIC_SEQ_CST));
    return map;
}

static bool says(const uint8_t *page, int offset)
{
    return tz_load((const uint64_t *)(const void *)(page + offset)) != 0;
}

bool tz_control_stopped(void)
{
    const uint8_t *page = tz_config.map[0] ? control() : NULL;

    return page && (says(page, OFF_STOPPED) || says(page, OFF_SITE_STOPPED));
}

const struct tz_map *tz_current_map(struct tz_scratch *scratch, uint8_t *outcome)
{
    const uint8_t *page = control();
    const struct tz_map *map;
    uint64_t generation;

    *outcome = TZ_LATE;
    if (!page)
        return NULL;
    generation = tz_load((const uint64_t *)(const void *)(page + OFF_GENERATION));
    if (generation == 0)
        return NULL;
    map = hold(scratch);
    if ((!map || map->generation != generation) && tz_load(&current.bad) != generation) {
        load_map(generation);
        map = hold(scratch);
    }
    if (map && map->expires_s && tz_about_now_s() >= map->expires_s)
        return NULL;
    return map;
}
