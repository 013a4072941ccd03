/* Making a directory by mkdir(): the client chooses the MDT, and a new one gets a copy of its parent's default layout.
 */
#include "tb.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Ends under the lock where the directory is to be in the mount: who finds it made must find all that is known of it.
 */
int dir_begin(struct tb_making *making, int dirfd, const char *path, bool made)
{
    char whole[PATH_MAX], *name;
    size_t length = path ? strlen(path) : 0;
    const char *directory = ".";
    int rc = 0, saved = errno;
    struct stat st;
    bool there;

    memset(making, 0, sizeof(*making));
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length == 0 || length >= sizeof(whole))
        return 0;
    memcpy(whole, path, length);
    whole[length] = 0;
    if (!path_in_mount(dirfd, whole, true))
        return 0;
    /* Of what is there already the client knows by its lookup: it asks no MDT. */
    there = !made && syscall(SYS_newfstatat, dirfd, whole, &st, AT_SYMLINK_NOFOLLOW) == 0;
    name = strrchr(whole, '/');
    if (name) {
        *name++ = 0;
        directory = *whole ? whole : "/";
    } else
        name = whole;
    if (tb_state->n_mdts > 1 || (tb_state->mdt[0].flags & MDT_AWAY)) {
        int parent = (int)syscall(SYS_openat, dirfd, directory, O_PATH | O_DIRECTORY | O_CLOEXEC), mdt = 0;

        if (parent >= 0) {
            rc = mdt_wait(place_of_name(parent, name));
            if (rc == 0 && !there)
                mdt = lmv_choose(parent, name, NULL, &making->place);
            real_close(parent);
            rc = rc ? rc : mdt < 0 ? mdt : mdt_wait((uint32_t)mdt);
        }
    }
    errno = saved;
    if (rc == 0) {
        making->ours = true;
        tb_lock();
    }
    return rc;
}

void dir_end(struct tb_making *making, int dirfd, const char *path, bool made)
{
    int fd, saved = errno;

    if (!making->ours)
        return;
    if (made) {
        fd = (int)syscall(SYS_openat, dirfd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            sidecar_inherit(fd);
            if (making->place.mdt || making->place.stripes)
                place_store(fd, &making->place);
            real_close(fd);
        }
        mdt_count(making->place.mdt, MD_MKDIR, 1);
    }
    tb_unlock();
    errno = saved;
}
