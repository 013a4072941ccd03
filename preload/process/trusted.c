/*
 * The way to a directory, entry by entry, each through the descriptor of the one before. An entry of root's or of this
 * user's, in a directory that is fit, stays what it is: nobody else can put another in its place.
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

static bool is_fit(int fd, bool *shared)
{
    struct tz_stat st;

    if (tz_fstat(fd, &st) || !S_ISDIR(st.mode) || !is_ours(&st, *shared))
        return false;
    *shared = *shared || (st.mode & 022);
    return !(st.mode & 022) || (st.mode & S_ISVTX);
}

static bool is_own(int fd)
{
    struct tz_stat st;

    return tz_fstat(fd, &st) == 0 && S_ISDIR(st.mode) && st.uid == tz_euid() && !(st.mode & 022);
}

/* The entry as it is, a link too. O_DIRECTORY lets the kernel mount what is mounted on demand. */
static int look(int at, const char *name)
{
    int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, fd = (int)syscall(SYS_openat, at, name, flags | O_DIRECTORY);

    return fd < 0 && (errno == ENOTDIR || errno == ELOOP) ? (int)syscall(SYS_openat, at, name, flags) : fd;
}

static int enter(int at, const char *name, bool make)
{
    int fd = look(at, name);

    if (fd >= 0 || errno != ENOENT || !make)
        return fd;
    return syscall(SYS_mkdirat, at, name, 0700) == 0 || errno == EEXIST ? look(at, name) : -1;
}

/*
 * In new pages at `*way`, what a link of root's or of this user's says, and the rest behind it; false for any other.
 * The rest may lie in the pages that were there. Links are rare, and a signal handler's stack may be small.
 */
static bool follow(int link, bool shared, char **way, const char *rest)
{
    size_t behind = strlen(rest) + 1;
    struct tz_stat st;
    long length;
    char *next;

    if (tz_fstat(link, &st) || !is_ours(&st, shared) || st.links != 1 || !(next = tz_pages(MOST)))
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
    size_t length = strcspn(*rest, "/");

    if (length >= NAME_ROOM)
        return false;
    memcpy(name, *rest, length);
    name[length] = '\0';
    *rest += length;
    *rest += **rest == '/';
    return true;
}

static bool is_link(int fd)
{
    struct tz_stat st;

    return tz_fstat(fd, &st) == 0 && S_ISLNK(st.mode);
}

static int root(void)
{
    return tz_sys_open("/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

int tz_trusted_directory(const char *path, bool make)
{
    char name[NAME_ROOM], *way = NULL;
    const char *rest = path;
    bool shared = false, fit = path[0] == '/';
    int at = fit ? root() : -1, next, links = 0, why;

    while (at >= 0 && *(rest += strspn(rest, "/"))) {
        fit = take_name(&rest, name) && is_fit(at, &shared);
        next = fit ? enter(at, name, make) : -1;
        if (next >= 0 && is_link(next)) { /* the last one has to be the directory itself */
            fit = *rest && ++links <= LINKS && follow(next, shared, &way, rest);
            tz_sys_close(next);
            if (fit)
                rest = way;
            if (fit && way[0] != '/')
                continue;
            next = fit ? root() : -1;
        }
        why = errno;
        tz_sys_close(at);
        errno = why;
        at = next;
    }
    tz_pages_free(way, MOST);
    if (at >= 0 && !is_own(at)) {
        tz_sys_close(at);
        at = -1;
        fit = false;
    }
    if (!fit)
        errno = path[0] == '/' ? EPERM : EINVAL;
    return at;
}
