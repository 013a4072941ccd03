/* Paths: the working directory, directories behind descriptors, and what lies in no mount. */
#include "names/paths.h"
#include "base/lock.h"
#include "base/rawsys.h"
#include "base/text.h"
#include "names/dircache.h"
#include "process/files.h"
#include "process/state.h"

static struct {
    struct tz_lock lock;
    uint32_t generation; /* atomic, of the working directory */
    uint32_t known;      /* the generation that the text belongs to, and one; 0: none */
    uint32_t length;
} cwd;
TZ_LARGE static char cwd_text[TZ_PATH_MAX];

void tz_cwd_changed(void)
{
    __atomic_add_fetch(&cwd.generation, 1, __ATOMIC_ACQ_REL);
}

void tz_paths_forked(void)
{
    cwd.known = 0;
    tz_dircache_forked();
}

/* The working directory; its length, 0 when it cannot be known. */
static size_t read_cwd(char *out)
{
    uint32_t generation = tz_load(&cwd.generation);
    size_t length = 0;
    long n;

    if (tz_trylock(&cwd.lock)) {
        if (cwd.known == generation + 1) {
            length = cwd.length;
            memcpy(out, cwd_text, length);
        }
        tz_unlock(&cwd.lock);
    }
    if (length)
        return length;
    n = syscall(SYS_getcwd, out, (size_t)TZ_PATH_MAX);
    if (n < 2 || out[0] != '/') /* "(unreachable)" */
        return 0;
    length = (size_t)n - 1;
    if (tz_owner_quick() && tz_trylock(&cwd.lock)) {
        memcpy(cwd_text, out, length);
        cwd.length = (uint32_t)length;
        cwd.known = generation + 1;
        tz_unlock(&cwd.lock);
    }
    return length;
}

/* The directory that a relative path starts from, without a slash at its end; its length, 0 when unknown. */
static size_t read_base(int dirfd, char *out)
{
    uint32_t before;
    size_t length;

    if (dirfd == AT_FDCWD)
        return read_cwd(out);
    if (dirfd < 0)
        return 0;
    length = tz_files_directory(dirfd, out, TZ_PATH_MAX);
    if (length)
        return length;
    before = tz_files_replacements();
    length = tz_fd_path(dirfd, out);
    if (length && tz_owner_quick())
        tz_files_set_directory(dirfd, out, length, before);
    return length;
}

static bool begins(const char *path, const char *with, size_t length)
{
    return strncmp(path, with, length) == 0;
}

/* Nothing of an I/O job lies there, and MPI libraries open hundreds of files in them. */
static bool never_managed(const char *path)
{
    switch (path[1]) {
    case 'p':
        return !tz_mounts.in_system[0] && begins(path, "/proc/", 6);
    case 's':
        return !tz_mounts.in_system[1] && begins(path, "/sys/", 5);
    case 'd':
        return !tz_mounts.in_system[2] && begins(path, "/dev/", 5);
    default:
        return false;
    }
}

static bool join(struct tz_where *where, const struct tz_dir *dir, const char *name, size_t name_length,
                 struct tz_scratch *scratch)
{
    struct tz_mount *m = where->mount;
    size_t length = m->below_length + dir->below_length + 1 + name_length;
    char *key = tz_room(scratch->near_key, TZ_NEAR_KEY, scratch->key, length + 1);

    if (length >= TZ_KEY_MAX)
        return false;
    memcpy(key, m->below, m->below_length);
    memcpy(key + m->below_length, tz_dir_below(dir), dir->below_length);
    key[m->below_length + dir->below_length] = '/';
    memcpy(key + length - name_length, name, name_length + 1);
    where->key = key;
    where->key_length = (uint32_t)length;
    return true;
}

/* The directory of an absolute or relative path, from the cache or the kernel. NULL when it is in no mount. */
static const struct tz_dir *directory(int dirfd, const char *path, size_t length, struct tz_scratch **scratch)
{
    const char *raw = path;
    bool resolved = false;
    const struct tz_dir *dir;
    size_t base;

    if (path[0] != '/') {
        if (!tz_scratch_need(scratch) || (base = read_base(dirfd, (*scratch)->raw)) == 0)
            return NULL;
        resolved = length == 0;
        if (length) {
            (*scratch)->raw[base] = '/';
            memcpy((*scratch)->raw + base + 1, path, length);
            length++;
        }
        raw = (*scratch)->raw;
        length += base;
    }
    dir = tz_dircache_find(raw, length);
    if (!dir && tz_scratch_need(scratch))
        dir = tz_dircache_add(raw, length, resolved, *scratch);
    return dir && dir->mount ? dir : NULL;
}

bool tz_locate(int dirfd, const char *path, struct tz_scratch **scratch, struct tz_where *where)
{
    const char *slash, *name;
    const struct tz_dir *dir;
    size_t length, name_length;

    if (!path || !*path || (path[0] == '/' && never_managed(path)))
        return false;
    length = strlen(path);
    if (length >= TZ_PATH_MAX)
        return false;
    slash = memrchr(path, '/', length);
    name = slash ? slash + 1 : path;
    name_length = (size_t)(path + length - name);
    if (!*name || (*name == '.' && (!name[1] || (name[1] == '.' && !name[2]))))
        return false;
    length = slash ? (size_t)(slash - path) : 0;
    if (slash == path)
        length = 1;
    dir = directory(dirfd, path, length, scratch);
    if (!dir || !tz_scratch_need(scratch))
        return false;
    where->mount = dir->mount;
    return join(where, dir, name, name_length, *scratch);
}
