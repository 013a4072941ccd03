/* The table of directories, and asking the kernel about those that are not in it. */
#include "names/dircache.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/pages.h"
#include "base/rawsys.h"
#include "base/text.h"
#include "process/state.h"

/* openat2 came with Linux 5.6; older headers lack it. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
struct how {
    uint64_t flags, mode, resolve;
};
enum { HOW_NO_SYMLINKS = 0x04 };

_Static_assert(sizeof(struct tz_dir) + 2 * TZ_PATH_MAX <= sizeof((struct tz_scratch *)0)->directory, "it fits");

enum { SLOTS = 4096, LIMIT = 3072, ARENA = 65536, ARENAS = 32 };

static const struct tz_dir *table[SLOTS]; /* atomic pointers; entries are never freed */
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

const struct tz_dir *tz_dircache_find(const char *raw, size_t length)
{
    uint64_t hash = tz_hash_text(raw, length, 0);

    for (uint32_t slot = hash % SLOTS, probed = 0; probed < SLOTS; slot = (slot + 1) % SLOTS, probed++) {
        const struct tz_dir *dir = tz_load(&table[slot]);

        if (!dir)
            return NULL;
        if (dir->hash == hash && dir->raw_length == length && memcmp(dir->text, raw, length) == 0)
            return dir;
    }
    return NULL;
}

static struct tz_dir *carve(size_t size)
{
    size = (size + 15) & ~(size_t)15;
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
    uint32_t slot = found->hash % SLOTS;

    if (!tz_owner_quick() || tz_relaxed(&filled) >= LIMIT || !tz_trylock(&lock))
        return found;
    kept = tz_dircache_find(found->text, found->raw_length); /* another thread was faster */
    copy = kept ? NULL : carve(size);
    if (copy) {
        memcpy(copy, found, size);
        while (table[slot])
            slot = (slot + 1) % SLOTS;
        tz_store(&table[slot], copy);
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
    static uint32_t unknown; /* atomic: this kernel has no such call */
    struct how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = HOW_NO_SYMLINKS};
    int fd;

    if (tz_load(&unknown))
        return false;
    fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (fd < 0) {
        if (errno == ENOSYS)
            tz_store(&unknown, 1);
        return false;
    }
    tz_sys_close(fd);
    return true;
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
        size_t length = ask_kernel(m->path, scratch->text);
        if (length > 1 && length < sizeof m->real) {
            memcpy(m->real, scratch->text, length);
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

/* The directory as the kernel has it, in scratch->text; its length, 0 when it does not exist. */
static size_t resolve(const char *raw, size_t length, struct tz_scratch *scratch)
{
    char *path = scratch->asked;
    struct tz_mount *m;
    uint32_t start;

    m = mount_of(raw, length, &start);
    if (is_clean(raw, length)) {
        /* The mount's own path may hold links; what is below it usually holds none: two system calls. */
        uint32_t real = m ? tz_load(&m->real_length) : 0;
        size_t head = real ? real : start, rest = length - start;

        if (head + rest >= TZ_PATH_MAX)
            return 0;
        memcpy(path, real ? m->real : raw, head);
        memcpy(path + head, raw + start, rest);
        path[head + rest] = '\0';
        if (has_no_symlinks(path)) {
            memcpy(scratch->text, path, head + rest);
            return head + rest;
        }
    }
    memcpy(path, raw, length);
    path[length] = '\0';
    return ask_kernel(path, scratch->text);
}

const struct tz_dir *tz_dircache_add(const char *raw, size_t length, bool resolved, struct tz_scratch *scratch)
{
    struct tz_dir *found = (void *)scratch->directory;
    uint32_t start;
    size_t n;

    if (length == 0 || length >= TZ_PATH_MAX || !resolve_mounts(scratch))
        return NULL;
    if (resolved) {
        memcpy(scratch->text, raw, length);
        n = length;
    } else {
        n = resolve(raw, length, scratch);
    }
    if (n == 0)
        return NULL;
    found->hash = tz_hash_text(raw, length, 0);
    found->mount = mount_of(scratch->text, n, &start);
    found->raw_length = (uint32_t)length;
    found->below_length = found->mount ? (uint32_t)(n - start) : 0;
    memcpy(found->text, raw, length);
    if (found->mount)
        memcpy(found->text + length, scratch->text + start, found->below_length);
    return remember(found);
}
