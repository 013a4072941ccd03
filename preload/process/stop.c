/* The site's stop file, and what the job's control page says. */
#include "process/stop.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/rawsys.h"
#include "process/mounts.h"
#include "process/state.h"

enum { EVERY_NS = 1000000000 };

static struct {
    struct tz_lock lock;
    int way;          /* atomic: 0 not known, 1 straight, -1 a symbolic link may lead elsewhere: never looked at */
    uint64_t next_ns; /* atomic: the next look */
    int there;        /* atomic: what the last look showed */
} site;

/* A directory on the way to the stop file; under the lock. */
TZ_LARGE static char part[sizeof tz_config.stop];

/* No "." or ".." on the way. */
static bool is_plain(const char *path)
{
    for (; *path; path++)
        if (path[0] == '/' && (path[1] == '/' || path[1] == '.'))
            return false;
    return true;
}

/* No symbolic link among the directories on the way. */
static bool has_no_links(const char *path)
{
    char target[8];

    for (size_t i = 1; path[i]; i++) {
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (tz_readlink(part, target, sizeof target) >= 0)
            return false;
    }
    return true;
}

/* Links and dots could lead to another file system than the path says. Not known where the way ends early. */
static int find_way(const char *path)
{
    int fd;

    if (!is_plain(path))
        return -1;
    fd = tz_sys_open_straight(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        tz_sys_close(fd);
        return 1;
    }
    if (errno == ENOENT || errno == ELOOP)
        return errno == ENOENT ? 0 : -1;
    return has_no_links(path) ? 1 : -1;
}

static bool is_roots(const char *path, mode_t type, struct stat *st)
{
    return syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW) == 0 && (st->st_mode & S_IFMT) == type &&
           st->st_uid == 0 && !(st->st_mode & 022);
}

/* Under the lock. A file of root's, under one name, in a directory that only root can change. */
static bool is_there(void)
{
    struct stat st;

    if (site.way == 0)
        tz_store(&site.way, find_way(tz_config.stop));
    if (site.way <= 0 || !is_roots(tz_config.stop, S_IFREG, &st) || st.st_nlink != 1)
        return false;
    memcpy(part, tz_config.stop, sizeof part);
    *strrchr(part, '/') = '\0';
    return is_roots(part[0] ? part : "/", S_IFDIR, &st);
}

bool tz_stopped(struct tz_said *said)
{
    uint64_t now, next;

    tz_control_look(said);
    if (tz_unlikely(said->stopped))
        return true;
    if (!tz_mounts.stop_is_local || tz_relaxed(&site.way) < 0)
        return false;
    now = tz_about_steady_ns();
    next = tz_load(&site.next_ns);
    if (tz_unlikely(now >= next) && tz_owner_quick() &&
        __atomic_compare_exchange_n(&site.next_ns, &next, now + EVERY_NS, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        tz_trylock_slow(&site.lock, false)) {
        tz_store(&site.there, is_there());
        tz_unlock(&site.lock);
    }
    return tz_load(&site.there);
}
