/* Which descriptors and paths lie in the mount, and what is remembered of a descriptor between calls. */
#include "tb.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FDS 65536

/* A cache only: an entry counts for the inode that it names, so descriptors may be closed behind our back. */
struct fd_entry {
    uint64_t ino, covered;
    uint32_t epoch;
    uint8_t inside, delayed, moved; /* moved: what is open here is open at another number as well */
};

static struct fd_entry table[FDS];

static dev_t mount_device(void)
{
    static dev_t device;
    struct stat st;

    if (!device && stat(tb_mount, &st) == 0)
        device = st.st_dev;
    return device;
}

static bool link_in_mount(int fd)
{
    char link[64], path[PATH_MAX];
    size_t mount = strlen(tb_mount);
    ssize_t length;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = syscall(SYS_readlink, link, path, sizeof(path) - 1);
    if (length < (ssize_t)mount)
        return false;
    path[length] = 0;
    return memcmp(path, tb_mount, mount) == 0 && (path[mount] == 0 || path[mount] == '/');
}

bool fd_in_mount(int fd, struct stat *st)
{
    int saved = errno;
    bool inside = tb_attach() && fstat(fd, st) == 0 && st->st_dev == mount_device() && link_in_mount(fd);

    errno = saved;
    return inside;
}

/* `parent`: the path need not exist, the directory that would hold it decides. */
bool path_in_mount(int dirfd, const char *path, bool parent)
{
    char directory[PATH_MAX];
    struct stat st;
    int saved = errno, fd;
    bool inside = false;

    if (!tb_attach() || !path || strlen(path) >= PATH_MAX)
        return false;
    strcpy(directory, path);
    if (parent) {
        char *slash = strrchr(directory, '/');

        if (!slash)
            strcpy(directory, ".");
        else
            slash[slash == directory] = 0;
    }
    fd = syscall(SYS_openat, dirfd, directory, O_PATH | O_CLOEXEC);
    if (fd >= 0) {
        inside = fd_in_mount(fd, &st);
        real_close(fd);
    }
    errno = saved;
    return inside;
}

static struct fd_entry *entry_of(int fd, const struct stat *st)
{
    static __thread struct fd_entry beyond;
    struct fd_entry *entry = fd < FDS ? &table[fd] : &beyond;

    if (fd >= FDS || entry->ino != st->st_ino || entry->epoch != tb_state->epoch + 1) {
        struct fd_entry before = fd < FDS && entry->ino == st->st_ino ? *entry : (struct fd_entry){0};

        *entry = (struct fd_entry){
            .ino = st->st_ino, .epoch = tb_state->epoch + 1, .delayed = before.delayed, .moved = before.moved};
        entry->inside = link_in_mount(fd);
    }
    return entry;
}

/*
 * After a successful open. One for writing makes the default layout, also of a file that another one has created; not
 * where the layout was to wait, or where this client has a handle for writing already that waits for one: then nobody
 * asks the MDS, and writes fail until the layout is there. A handle for reading is lent to readers alone.
 */
int fd_opened(int fd, int flags, bool delayed)
{
    bool wants = (flags & O_ACCMODE) != O_RDONLY;
    struct stat st;
    int saved = errno, rc = 0;

    if (!tb_attach() || (flags & (O_PATH | O_DIRECTORY)))
        return 0;
    if (wants && fd_in_mount(fd, &st) && S_ISREG(st.st_mode)) {
        struct fd_entry *entry;

        if (fd < FDS)
            table[fd].ino = 0;
        entry = entry_of(fd, &st);
        if (delayed)
            handle_hold(fd);
        else if (layout_get(fd, NULL, 0) == -ENODATA && handle_of_client(fd))
            delayed = true;
        else
            rc = layout_ensure_default(fd, &st);
        entry->delayed = delayed;
    }
    errno = saved;
    return rc;
}

/* True for a regular file in the mount; fills `st`. */
bool fd_managed(int fd, struct stat *st)
{
    int saved = errno;
    bool managed = tb_attach() && fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode) &&
                   st->st_dev == mount_device() && entry_of(fd, st)->inside;

    errno = saved;
    return managed;
}

/* Of a managed descriptor: whether it was said to be moved; and from now on it is. */
bool fd_moved(int fd, const struct stat *st, bool now)
{
    struct fd_entry *entry = entry_of(fd, st);
    bool before = entry->moved;

    entry->moved |= now;
    return before;
}

/* Before data reach `end`. Returns 0 or the negative errno that the application sees. */
int fd_cover(int fd, const struct stat *st, uint64_t end, bool truncate)
{
    struct fd_entry *entry = entry_of(fd, st);
    int saved = errno, rc;

    if (end <= entry->covered && !(truncate && end == entry->covered))
        return 0;
    rc = layout_cover(fd, end, truncate, &entry->covered);
    if (rc == 0 && entry->delayed) { /* it was set after this descriptor was opened */
        tb_request(TO_MDS_LAYOUT, 1);
        entry->delayed = false;
    }
    if (rc == -ENODATA && st->st_nlink == 0)
        rc = 0;
    if (rc == -ENODATA && entry->delayed) {
        rc = truncate ? 0 : -EBADF;
    } else if (rc == -ENODATA) {
        rc = layout_ensure_default(fd, st); /* created behind our back, by a static program for example */
        if (rc == 0)
            rc = layout_cover(fd, end, truncate, &entry->covered);
    }
    errno = saved;
    return rc;
}

/* What has to reach a server that is gone waits until it is back, whatever signal comes; opens do not. */
void fd_wait(int fd, uint64_t from, uint64_t to)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int saved = errno;

    while (tb_state->dead && layout_reaches_dead(fd, from, to))
        nanosleep(&pause, NULL);
    errno = saved;
}

/* Data may have arrived by ways that are not interposed (stdio, mmap): account for the size that the file has now. */
void fd_closing(int fd)
{
    struct stat st;
    int saved = errno;

    if (fd < 0 || fd >= FDS || !tb_attach() || !table[fd].ino)
        return;
    if (table[fd].inside && fstat(fd, &st) == 0 && st.st_ino == table[fd].ino && st.st_size > 0)
        fd_cover(fd, &st, st.st_size, false);
    table[fd] = (struct fd_entry){0};
    errno = saved;
}
