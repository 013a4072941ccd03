/* The MDTs: on which one a directory lies (TB/mds/lmv/<inode>), what each has done, and one that is away. All of them
 * are on one server. With one MDT there is nothing to keep. */
#include "tb.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PLACE_MAGIC "TBLMV001"

struct kept {
    char magic[8];
    struct identity of;
    struct tb_place place;
};

static void place_path(uint64_t ino, char *path, size_t size)
{
    snprintf(path, size, "%s/lmv/%llu", tb_mds, (unsigned long long)ino);
}

/* Under the lock: who has just found a directory must find where it lies, too. */
static bool load(int fd, struct tb_place *place)
{
    char path[PATH_MAX + 64];
    struct identity of;
    struct kept kept;
    ssize_t got = 0;
    int in;

    if (sidecar_identify(fd, &of) != 0)
        return false;
    place_path(of.ino, path, sizeof(path));
    tb_lock();
    in = real_open(path, O_RDONLY, 0);
    if (in >= 0) {
        got = syscall(SYS_read, in, &kept, sizeof(kept));
        real_close(in);
    }
    tb_unlock();
    if (got != sizeof(kept) || memcmp(kept.magic, PLACE_MAGIC, 8) != 0 || memcmp(&kept.of, &of, sizeof(of)) != 0)
        return false; /* or it was of an earlier inode with that number */
    *place = kept.place;
    return true;
}

static bool is_root(int fd)
{
    struct stat st, root;

    return fstat(fd, &st) == 0 && stat(tb_mount, &root) == 0 && st.st_ino == root.st_ino && st.st_dev == root.st_dev;
}

void place_load(int fd, struct tb_place *place)
{
    int saved = errno;

    memset(place, 0, sizeof(*place));
    if (tb_state->n_mdts > 1 && !load(fd, place) && is_root(fd)) {
        /* The file system's default, as it is made: below the root, by turns on three levels. */
        place->has_default = 1;
        place->dmv = (struct lmv_user_md){.lum_magic = LMV_USER_MAGIC,
                                          .lum_stripe_count = 1,
                                          .lum_stripe_offset = LMV_OFFSET_DEFAULT,
                                          .lum_max_inherit = LMV_INHERIT_UNLIMITED,
                                          .lum_max_inherit_rr = LMV_INHERIT_RR_ROOT};
    }
    errno = saved;
}

int place_store(int fd, const struct tb_place *place)
{
    char path[PATH_MAX + 64];
    struct kept kept;
    int rc;

    memset(&kept, 0, sizeof(kept));
    memcpy(kept.magic, PLACE_MAGIC, 8);
    kept.place = *place;
    rc = sidecar_identify(fd, &kept.of);
    if (rc)
        return rc;
    place_path(kept.of.ino, path, sizeof(path));
    return sidecar_write(path, &kept, sizeof(kept));
}

/* The MDT of the directory that is open, or of what has that name in it: a striped one spreads names by their hash. */
uint32_t place_of_name(int parent, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    struct tb_place place;

    place_load(parent, &place);
    if (place.stripes < 2 || !name)
        return place.mdt;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return place.stripe_mdt[hash % place.stripes];
}

/* The MDT of something that has this path, or would have. */
uint32_t place_of_path(int dirfd, const char *path)
{
    char directory[PATH_MAX], *slash;
    const char *name = path;
    uint32_t mdt = 0;
    int fd, saved = errno;

    if (tb_state->n_mdts < 2 || !path || strlen(path) >= sizeof(directory))
        return 0;
    strcpy(directory, path);
    slash = strrchr(directory, '/');
    if (slash) {
        name = path + (slash - directory) + 1;
        slash[slash == directory] = 0;
    } else
        strcpy(directory, ".");
    fd = (int)syscall(SYS_openat, dirfd, directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        mdt = place_of_name(fd, name);
        real_close(fd);
    }
    errno = saved;
    return mdt;
}

/* The MDT of a descriptor: its own of a directory, that of its directory of a file. */
uint32_t place_of_fd(int fd)
{
    char link[64], path[PATH_MAX];
    struct tb_place place;
    ssize_t length;
    struct stat st;
    int saved = errno;

    if (tb_state->n_mdts < 2)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        place_load(fd, &place);
        return place.mdt;
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = syscall(SYS_readlink, link, path, sizeof(path) - 1);
    errno = saved;
    if (length < 0)
        return 0;
    path[length] = 0;
    return place_of_path(AT_FDCWD, path);
}

void mdt_count(uint32_t mdt, enum tb_md op, int64_t times)
{
    uint32_t client = tb_client();
    int64_t sign = op == MD_UNLINK || op == MD_RMDIR ? -1 : 1;

    if (!tb_state || mdt >= tb_state->n_mdts || times <= 0)
        return;
    client = client <= TB_MAX_MDT_CLIENTS ? client : 0;
    __atomic_add_fetch(&tb_state->mdt[mdt].done[client][op], times, __ATOMIC_RELAXED);
    if (op == MD_MKNOD || op == MD_UNLINK)
        __atomic_add_fetch(&tb_state->mdt[mdt].files, sign * times, __ATOMIC_RELAXED);
    else if (op == MD_MKDIR || op == MD_RMDIR)
        __atomic_add_fetch(&tb_state->mdt[mdt].directories, sign * times, __ATOMIC_RELAXED);
}

/* What has to reach an MDT that is away waits until it is back; -EIO, as after an eviction, where the testbed has set
 * a limit. Not under the lock. */
int mdt_wait(uint32_t mdt)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    uint64_t waited_ms = 0;
    int saved = errno;

    while (mdt < tb_state->n_mdts && (tb_state->mdt[mdt].flags & MDT_AWAY)) {
        if (tb_state->mdt_wait_ms && waited_ms >= tb_state->mdt_wait_ms)
            return -EIO;
        nanosleep(&pause, NULL);
        waited_ms += 10;
    }
    errno = saved;
    return 0;
}

/* What is set of `mdt.FS-MDT000N.NAME` on the server. */
long mdt_parameter(uint32_t mdt, const char *name, long otherwise)
{
    char path[PATH_MAX + 128], text[32];
    ssize_t got;
    int fd;

    snprintf(path, sizeof(path), "%s/root/sys/fs/lustre/mdt/%s-MDT%04x/%s", tb_mds, tb_state->fs_name, mdt, name);
    fd = real_open(path, O_RDONLY, 0);
    if (fd < 0)
        return otherwise;
    got = syscall(SYS_read, fd, text, sizeof(text) - 1);
    real_close(fd);
    if (got <= 0)
        return otherwise;
    text[got] = 0;
    return strtol(text, NULL, 10);
}

/* Whether this MDT keeps the caller from saying where directories lie: enable_remote_dir_gid. Who has the groups that
 * it has here has them on the server (identity_upcall). */
bool mdt_denies(uint32_t mdt)
{
    long wanted = mdt_parameter(mdt, "enable_remote_dir_gid", 0);
    gid_t groups[NGROUPS_MAX];
    int count;

    if (!mdt_parameter(mdt, "enable_remote_dir", 1))
        return true;
    if (wanted == -1 || geteuid() == 0 || (long)getegid() == wanted)
        return false;
    count = getgroups(NGROUPS_MAX, groups);
    for (int i = 0; i < count; i++)
        if ((long)groups[i] == wanted)
            return false;
    return true;
}
