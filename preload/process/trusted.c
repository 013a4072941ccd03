/*
 * The way to a directory, entry by entry, each through the descriptor of the one before. An entry of root's or of this
 * user's, in a directory that is fit, stays what it is: nobody else can put another in its place. The way is gone once:
 * afterwards the directory is known by its device and inode.
 */
#include "process/trusted.h"
#include "base/pages.h"
#include "base/rawsys.h"

enum { MOST = 4096, NAME_ROOM = 256, LINKS = 8, NOBODY = 65534 };

/*
 * In a user namespace, which containers have, root may have no number: what is his is shown as nobody's, and so is what
 * is anybody's.
 */
static bool is_namespace(void)
{
    char text[64] = "";
    int fd = tz_sys_open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0)
        return false;
    if (syscall(SYS_read, fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    tz_sys_close(fd);
    return text[0] && !strstr(text, "4294967295"); /* all numbers there are */
}

/* `shared`: others can write to a directory on the way, so what comes below it may be anybody's. */
static bool is_ours(const struct tz_stat *st, bool shared)
{
    return st->uid == 0 || st->uid == tz_euid() || (st->uid == NOBODY && !shared && is_namespace());
}

static bool is_fit(const struct tz_stat *st, bool *shared)
{
    if (!S_ISDIR(st->mode) || !is_ours(st, *shared))
        return false;
    *shared = *shared || (st->mode & 022);
    return !(st->mode & 022) || (st->mode & S_ISVTX);
}

static bool is_own(const struct tz_stat *st)
{
    return S_ISDIR(st->mode) && st->uid == tz_euid() && !(st->mode & 022);
}

/* Looks at what has been opened; where that fails it is closed. */
static int looked_at(int fd, struct tz_stat *st)
{
    if (fd < 0 || tz_fstat(fd, st) == 0)
        return fd;
    tz_sys_close(fd);
    return -1;
}

/* The entry as it is, a link too. O_DIRECTORY lets the kernel mount what is mounted on demand. */
static int look(int at, const char *name, struct tz_stat *st)
{
    int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, fd = (int)syscall(SYS_openat, at, name, flags | O_DIRECTORY);

    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        fd = (int)syscall(SYS_openat, at, name, flags);
    return looked_at(fd, st);
}

static int enter(int at, const char *name, bool make, struct tz_stat *st)
{
    int fd = look(at, name, st);

    if (fd >= 0 || errno != ENOENT || !make)
        return fd;
    return syscall(SYS_mkdirat, at, name, 0700) == 0 || errno == EEXIST ? look(at, name, st) : -1;
}

/*
 * In new pages at `*way`, what a link of root's or of this user's says, and the rest behind it; false for any other.
 * The rest may lie in the pages that were there. Links are rare, and a signal handler's stack may be small.
 */
static bool follow(int link, const struct tz_stat *st, bool shared, char **way, const char *rest)
{
    size_t behind = strlen(rest) + 1;
    long length;
    char *next;

    if (!is_ours(st, shared) || st->links != 1 || !(next = tz_pages(MOST)))
        return false;
    length = syscall(SYS_readlinkat, link, "", next, MOST);
    if (length <= 0 || (size_t)length + 1 + behind > MOST) {
        tz_pages_free(next, MOST);
        return false;
    }
    next[length] = '/';
    memcpy(next + length + 1, rest, behind);
    tz_pages_free(*way, MOST);
    *way = next;
    return true;
}

/* The next name on the way, and the way behind it; false for one that no directory can have. */
static bool take_name(const char **rest, char name[NAME_ROOM])
{
    size_t length = tz_until(*rest, '/');

    if (length >= NAME_ROOM)
        return false;
    memcpy(name, *rest, length);
    name[length] = '\0';
    *rest += length;
    *rest += **rest == '/';
    return true;
}

static int root(struct tz_stat *st)
{
    return looked_at(tz_sys_open("/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0), st);
}

/* What the path leads to, entry by entry. */
static int walk(const char *path, bool make, struct tz_stat *st)
{
    char name[NAME_ROOM], *way = NULL;
    const char *rest = path;
    bool shared = false, fit = path[0] == '/';
    int at = fit ? root(st) : -1, next, links = 0, why;
    struct tz_stat entry;

    while (at >= 0 && *(rest += strspn(rest, "/"))) {
        fit = take_name(&rest, name) && is_fit(st, &shared);
        next = fit ? enter(at, name, make, &entry) : -1;
        if (next >= 0 && S_ISLNK(entry.mode)) { /* the last one has to be the directory itself */
            fit = *rest && ++links <= LINKS && follow(next, &entry, shared, &way, rest);
            tz_sys_close(next);
            if (fit)
                rest = way;
            if (fit && way[0] != '/')
                continue;
            next = fit ? root(&entry) : -1;
        }
        why = errno;
        tz_sys_close(at);
        errno = why;
        at = next;
        *st = entry;
    }
    tz_pages_free(way, MOST);
    if (at >= 0 && !is_own(st)) {
        tz_sys_close(at);
        at = -1;
        fit = false;
    }
    if (!fit)
        errno = path[0] == '/' ? EPERM : EINVAL;
    return at;
}

static bool is_same(const struct tz_stat *st, const struct tz_identity *known)
{
    return st->ino == tz_relaxed(&known->ino) && st->dev == tz_relaxed(&known->dev);
}

/* Whatever way leads there now: it is the directory to which a fit way has led. */
static int open_known(const char *path, const struct tz_identity *known, struct tz_stat *st)
{
    int fd;

    if (!tz_relaxed(&known->ino))
        return -1;
    fd = looked_at(tz_sys_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0), st);
    if (fd >= 0 && (!is_same(st, known) || !is_own(st))) {
        tz_sys_close(fd);
        fd = -1;
    }
    return fd;
}

int tz_trusted_directory(const char *path, bool make, struct tz_identity *known)
{
    struct tz_stat st;
    int fd = open_known(path, known, &st);

    if (fd < 0)
        fd = walk(path, make, &st);
    if (fd >= 0) {
        __atomic_store_n(&known->dev, st.dev, __ATOMIC_RELAXED);
        __atomic_store_n(&known->uid, st.uid, __ATOMIC_RELAXED);
        __atomic_store_n(&known->ino, st.ino, __ATOMIC_RELAXED);
    }
    return fd;
}
