#include "stop.h"
#include "rawsys.h"

#include <time.h>

enum { EVERY_MS = 1000 };

static struct {
    size_t point;     /* length of the mount point below which it lies */
    int local;        /* atomic: that is a file system of this node */
    int straight;     /* its path has been followed: no symbolic link leads elsewhere */
    uint64_t next_ms; /* atomic: the next look */
    int there;        /* atomic: what the last look showed */
} site;

static bool is_local(const char *type)
{
    static const char *const local[] = {"ext4", "xfs",    "overlay", "tmpfs",    "ext3",  "ext2", "btrfs",
                                        "zfs",  "rootfs", "ramfs",   "squashfs", "erofs", "f2fs", NULL};

    for (const char *const *name = local; *name; name++)
        if (strcmp(type, *name) == 0)
            return true;
    return false;
}

void tz_stop_mounted(const char *point, size_t length, const char *type)
{
    bool root = length == 1 && point[0] == '/';

    if (length < site.point || strncmp(tz_config.stop, point, length) != 0 || (!root && tz_config.stop[length] != '/'))
        return;
    site.point = length;
    site.local = is_local(type);
}

/* No symbolic link and no "." or ".." on the way: it could lead to another file system than the path says. */
static bool is_straight(const char *path)
{
    char part[sizeof tz_config.stop], target[8];
    size_t length = strlen(path);

    for (size_t i = 0; i < length; i++) {
        if (path[i] != '/')
            continue;
        if (path[i + 1] == '/' || path[i + 1] == '.')
            return false;
        if (i == 0)
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (tz_readlink(part, target, sizeof target) >= 0)
            return false;
    }
    return true;
}

static bool is_roots(const char *path, mode_t type, struct stat *st)
{
    return syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW) == 0 && (st->st_mode & S_IFMT) == type &&
           st->st_uid == 0 && !(st->st_mode & 022);
}

/* A file of root's, under one name, in a directory that only root can change. */
static bool is_there(void)
{
    char parent[sizeof tz_config.stop];
    struct stat st;
    char *last;

    if (!site.straight) {
        if (!is_straight(tz_config.stop)) {
            tz_store(&site.local, 0);
            return false;
        }
        site.straight = 1;
    }
    if (!is_roots(tz_config.stop, S_IFREG, &st) || st.st_nlink != 1)
        return false;
    memcpy(parent, tz_config.stop, sizeof parent);
    last = strrchr(parent, '/');
    *last = '\0';
    return is_roots(parent[0] ? parent : "/", S_IFDIR, &st);
}

static uint64_t about_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool tz_stopped(struct tz_said *said)
{
    uint64_t now, next;

    tz_control_said(said);
    if (tz_unlikely(said->stopped))
        return true;
    if (!tz_relaxed(&site.local))
        return false;
    now = about_now_ms();
    next = tz_load(&site.next_ms);
    if (tz_unlikely(now >= next) &&
        __atomic_compare_exchange_n(&site.next_ms, &next, now + EVERY_MS, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        tz_store(&site.there, is_there());
    return tz_load(&site.there);
}
