/* Loading the map that the control page names; earlier ones are closed when nobody reads them any more. */
#include "place/current.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/pages.h"
#include "core/map_open.h"
#include "process/state.h"

enum { RETIRED = 8 };

static struct {
    struct tz_lock lock;
    struct tz_map *map;              /* atomic */
    struct tz_map *retired[RETIRED]; /* earlier ones that a thread may still read */
    uint64_t bad;                    /* atomic: a generation that could not be used */
} current;

void tz_current_retry(void)
{
    tz_store(&current.bad, 0);
}

static void close_unread(int i)
{
    struct tz_map *map = current.retired[i];

    if (!map || tz_scratch_holds(map))
        return;
    current.retired[i] = NULL; /* first: a child may be forked at any moment */
    tz_map_close(map);
    tz_pages_free(map, sizeof *map);
}

/* Under the lock: closes earlier maps that nobody reads any more. One that does not fit stays mapped. */
static void retire(struct tz_map *old)
{
    for (int i = 0; i < RETIRED; i++) {
        close_unread(i);
        if (current.retired[i] || !old)
            continue;
        current.retired[i] = old;
        old = NULL;
        close_unread(i); /* a copy may be large, and every rank has one */
    }
}

/* `mapped`: the file may be read where it is; else it could be gone, or another, when a page of it is needed. */
static void load_map(uint64_t generation, bool mapped)
{
    TZ_LARGE static char path[1100]; /* under the lock */
    struct tz_map *map, *loaded;

    loaded = tz_load(&current.map);
    if (!tz_owner() || !tz_trylock_slow(&current.lock, mapped || !loaded))
        return;
    loaded = tz_load(&current.map);
    if (loaded && loaded->generation == generation) { /* by another thread, while this one waited */
        tz_unlock(&current.lock);
        return;
    }
    map = tz_pages(sizeof *map);
    if (map && tz_control_path(path, sizeof path, "map.", generation) &&
        !tz_map_open(path, tz_config.trusted_uid, !mapped, map) && map->generation == generation) {
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

const struct tz_map *tz_current_map(struct tz_scratch *scratch, const struct tz_said *said)
{
    uint64_t generation = said->generation;
    const struct tz_map *map;

    if (generation == 0)
        return NULL;
    map = hold(scratch);
    if ((!map || map->generation != generation) && tz_load(&current.bad) != generation) {
        __atomic_store_n(&scratch->map, NULL, __ATOMIC_SEQ_CST); /* what this thread has not begun to read may go */
        load_map(generation, said->mapped);
        map = hold(scratch);
    }
    if (map && map->expires_s && tz_about_now_s() >= map->expires_s)
        return NULL;
    return map;
}
