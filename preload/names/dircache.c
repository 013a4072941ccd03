/* The table of directories, and asking the kernel about those that are not in it. */
#include "names/dircache.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/pages.h"
#include "base/rawsys.h"
#include "base/text.h"
#include "process/state.h"

_Static_assert(sizeof(struct tz_dir) + 2 * TZ_PATH_MAX <= sizeof((struct tz_scratch *)0)->directory, "it fits");

enum { FIRST_SLOTS = 64, FIRST_LIMIT = 48, SLOTS = 4096, LIMIT = 3072, ARENA = 65536, ARENAS = 32 };

/* The first ones lie close together, and so does what they need: a page or two, all that most processes touch. */
static const struct tz_dir *first[FIRST_SLOTS];    /* atomic pointers; entries are never freed */
TZ_LARGE static const struct tz_dir *table[SLOTS]; /* the same */
TZ_MIDDLE static _Alignas(16) char first_arena[1024];
static struct tz_lock lock;
static uint32_t filled; /* atomic, written under the lock */
static char *arena;
static size_t arena_left;
static int arenas;

/* In the child of a fork the arena may be half way in the hands of a thread that does not exist. */
void tz_dircache_forked(void)
{
    arena = NULL;
    arena_left = 0;
}

static const struct tz_dir *find_in(const struct tz_dir **slots, uint32_t count, uint64_t hash, const char *raw,
                                    size_t length)
{
    for (uint32_t slot = hash % count, probed = 0; probed < count; slot = (slot + 1) % count, probed++) {
        const struct tz_dir *dir = tz_load(&slots[slot]);

        if (!dir)
            return NULL;
        if (dir->hash == hash && dir->raw_length == length && memcmp(dir->text, raw, length) == 0)
            return dir;
    }
    return NULL;
}

const struct tz_dir *tz_dircache_find(const char *raw, size_t length)
{
    uint64_t hash = tz_hash_text(raw, length, 0);
    const struct tz_dir *dir = find_in(first, FIRST_SLOTS, hash, raw, length);

    return dir || tz_load(&filled) <= FIRST_LIMIT ? dir : find_in(table, SLOTS, hash, raw, length);
}

static struct tz_dir *carve(size_t size)
{
    static bool begun;

    size = (size + 15) & ~(size_t)15;
    if (!begun) {
        begun = true;
        arena = first_arena;
        arena_left = sizeof first_arena;
    }
    if (size > arena_left) {
        arena = arenas < ARENAS ? tz_pages(ARENA) : NULL;
        arenas += arena != NULL;
        arena_left = arena ? ARENA : 0;
        if (!arena)
            return NULL;
    }
    arena += size;
    arena_left -= size;
    return (struct tz_dir *)(void *)(arena - size);
}

static const struct tz_dir *remember(const struct tz_dir *found)
{
    size_t size = sizeof *found + found->raw_length + found->below_length;
    const struct tz_dir *kept;
    struct tz_dir *copy;
    const struct tz_dir **slots;
    uint32_t slot, count;

    if (!tz_owner_quick() || tz_relaxed(&filled) >= LIMIT || !tz_trylock(&lock))
        return found;
    kept = tz_dircache_find(found->text, found->raw_length); /* another thread was faster */
    copy = kept ? NULL : carve(size);
    if (copy) {
        memcpy(copy, found, size);
        slots = filled < FIRST_LIMIT ? first : table;
        count = filled < FIRST_LIMIT ? FIRST_SLOTS : SLOTS;
        for (slot = copy->hash % count; slots[slot]; slot = (slot + 1) % count)
            ;
        tz_store(&slots[slot], copy);
        tz_store(&filled, filled + 1);
        kept = copy;
    }
    tz_unlock(&lock);
    return kept ? kept : found;
}

/* No empty, "." or ".." part: only symbolic links can make it differ from what it says. */
static bool is_clean(const char *path, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        size_t n;

        if (path[i] != '/')
            continue;
        for (n = 0; i + 1 + n < length && path[i + 1 + n] != '/'; n++)
            ;
        if (n == 0 || (n <= 2 && path[i + 1] == '.' && (n == 1 || path[i + 2] == '.')))
            return false;
    }
    return true;
}

/* What the kernel calls a directory; its length, 0 when it cannot be opened. */
static size_t ask_kernel(const char *path, char *out)
{
    int fd = tz_sys_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    size_t length;

    if (fd < 0)
        return 0;
    length = tz_fd_path(fd, out);
    tz_sys_close(fd);
    return length;
}

static bool has_no_symlinks(const char *path)
{
    int fd = tz_sys_open_straight(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        tz_sys_close(fd);
    return fd >= 0;
}

/* What the kernel calls the place of a mount. */
static const char *place_of(const struct tz_mount *m, struct tz_scratch *scratch, size_t *length)
{
    *length = m->path_length;
    if (is_clean(m->path, m->path_length) && has_no_symlinks(m->path))
        return m->path;
    *length = ask_kernel(m->path, scratch->text);
    return scratch->text;
}

/* False while another thread is at it: nothing may be concluded, or remembered, from mounts half known. */
static bool resolve_mounts(struct tz_scratch *scratch)
{
    static uint32_t done; /* atomic */

    if (tz_load(&done))
        return true;
    if (!tz_trylock(&lock))
        return false;
    for (uint32_t i = 0; !tz_load(&done) && i < tz_mounts.count; i++) {
        struct tz_mount *m = &tz_mounts.list[i];
        size_t length;
        const char *place;

        if (tz_load(&m->real_length)) /* of the mount table */
            continue;
        place = place_of(m, scratch, &length);
        if (length > 1 && length < sizeof m->real) {
            memcpy(m->real, place, length);
            tz_store(&m->real_length, (uint32_t)length);
        }
    }
    tz_store(&done, 1);
    tz_unlock(&lock);
    return true;
}

static bool below(const char *path, size_t length, const char *prefix, size_t prefix_length)
{
    return prefix_length && length >= prefix_length && memcmp(path, prefix, prefix_length) == 0 &&
           (length == prefix_length || path[prefix_length] == '/');
}

/* The mount that a path lies in, the deepest one; `start` is where the part below it begins. */
static struct tz_mount *mount_of(const char *path, size_t length, uint32_t *start)
{
    struct tz_mount *best = NULL;

    *start = 0;
    for (uint32_t i = 0; i < tz_mounts.count; i++) {
        struct tz_mount *m = &tz_mounts.list[i];
        uint32_t real = tz_load(&m->real_length);

        if (real > *start && below(path, length, m->real, real)) {
            best = m;
            *start = real;
        }
        if (m->path_length > *start && below(path, length, m->path, m->path_length)) {
            best = m;
            *start = m->path_length;
        }
    }
    return best;
}

/* The directory as the kernel has it; its length, 0 when it does not exist. */
static const char *resolve(const char *raw, size_t length, struct tz_scratch *scratch, size_t *resolved)
{
    struct tz_mount *m;
    uint32_t start;
    char *path;

    m = mount_of(raw, length, &start);
    if (is_clean(raw, length)) {
        /* The mount's own path may hold links; what is below it usually holds none: two system calls. */
        uint32_t real = m ? tz_load(&m->real_length) : 0;
        size_t head = real ? real : start, rest = length - start;

        *resolved = head + rest < TZ_PATH_MAX ? head + rest : 0;
        if (!*resolved)
            return NULL;
        path = tz_room(scratch->near_asked, TZ_NEAR_PATH, scratch->asked, head + rest + 1);
        memcpy(path, real ? m->real : raw, head);
        memcpy(path + head, raw + start, rest);
        path[head + rest] = '\0';
        if ((real && rest == 0) || has_no_symlinks(path))
            return path;
    }
    path = tz_room(scratch->near_asked, TZ_NEAR_PATH, scratch->asked, length + 1);
    memcpy(path, raw, length);
    path[length] = '\0';
    *resolved = ask_kernel(path, scratch->text);
    return scratch->text;
}

bool tz_dircache_managed(const char *path, size_t length, struct tz_scratch *scratch)
{
    uint32_t start;

    return resolve_mounts(scratch) && mount_of(path, length, &start);
}

const struct tz_dir *tz_dircache_add(const char *raw, size_t length, bool resolved, struct tz_scratch *scratch)
{
    size_t n = length, below_length;
    struct tz_mount *mount;
    const char *path = raw;
    struct tz_dir *found;
    uint32_t start;

    if (length == 0 || length >= TZ_PATH_MAX || !resolve_mounts(scratch))
        return NULL;
    if (!resolved)
        path = resolve(raw, length, scratch, &n);
    if (n == 0)
        return NULL;
    mount = mount_of(path, n, &start);
    below_length = mount ? n - start : 0;
    found = (void *)tz_room(scratch->near_directory, TZ_NEAR_DIRECTORY, scratch->directory,
                            sizeof *found + length + below_length);
    found->hash = tz_hash_text(raw, length, 0);
    found->mount = mount;
    found->raw_length = (uint32_t)length;
    found->below_length = (uint32_t)below_length;
    memcpy(found->text, raw, length);
    if (mount)
        memcpy(found->text + length, path + start, below_length);
    return remember(found);
}
