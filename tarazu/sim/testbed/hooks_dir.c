/* Names of directories and files: making, removing, renaming. */
#include "tb.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int made(struct tb_making *making, int dirfd, const char *path, int refused, int rc)
{
    if (refused) {
        errno = -refused;
        return -1;
    }
    dir_end(making, dirfd, path, rc == 0);
    return rc;
}

PUBLIC int mkdir(const char *path, mode_t mode)
{
    struct tb_making making;
    int refused = dir_begin(&making, AT_FDCWD, path, false);

    return made(&making, AT_FDCWD, path, refused, refused ? -1 : NEXT(mkdir)(path, mode));
}

PUBLIC int mkdirat(int dirfd, const char *path, mode_t mode)
{
    struct tb_making making;
    int refused = dir_begin(&making, dirfd, path, false);

    return made(&making, dirfd, path, refused, refused ? -1 : NEXT(mkdirat)(dirfd, path, mode));
}

/* What is counted, and waits, at the MDT on which the name lies; TB_MAX_MDTS: elsewhere. */
static int reach(int dirfd, const char *path, uint32_t *mdt)
{
    *mdt = TB_MAX_MDTS;
    if (!path_in_mount(dirfd, path, true))
        return 0;
    *mdt = place_of_path(dirfd, path);
    return mdt_wait(*mdt);
}

static int directory_mdt(int dirfd, const char *path, uint32_t *mdt)
{
    int rc = reach(dirfd, path, mdt), fd;

    if (rc || *mdt == TB_MAX_MDTS || tb_state->n_mdts < 2)
        return rc;
    fd = NEXT(openat64)(dirfd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        *mdt = place_of_fd(fd);
        real_close(fd);
    }
    return mdt_wait(*mdt);
}

static int removing(int dirfd, const char *path, int flags, uint32_t *mdt)
{
    int saved = errno, rc = 0;

    *mdt = TB_MAX_MDTS;
    if (tb_attach())
        rc = flags & AT_REMOVEDIR ? directory_mdt(dirfd, path, mdt) : reach(dirfd, path, mdt);
    errno = rc ? -rc : saved;
    return rc;
}

static int removed(int rc, int flags, uint32_t mdt)
{
    if (rc == 0 && mdt < TB_MAX_MDTS)
        mdt_count(mdt, flags & AT_REMOVEDIR ? MD_RMDIR : MD_UNLINK, 1);
    return rc;
}

PUBLIC int unlink(const char *path)
{
    uint32_t mdt;

    return removing(AT_FDCWD, path, 0, &mdt) ? -1 : removed(NEXT(unlink)(path), 0, mdt);
}

PUBLIC int rmdir(const char *path)
{
    uint32_t mdt;

    if (removing(AT_FDCWD, path, AT_REMOVEDIR, &mdt))
        return -1;
    return removed(NEXT(rmdir)(path), AT_REMOVEDIR, mdt);
}

PUBLIC int unlinkat(int dirfd, const char *path, int flags)
{
    uint32_t mdt;

    return removing(dirfd, path, flags, &mdt) ? -1 : removed(NEXT(unlinkat)(dirfd, path, flags), flags, mdt);
}

PUBLIC int remove(const char *path)
{
    return unlink(path) == 0 || (errno == EISDIR && rmdir(path) == 0) ? 0 : -1;
}

/* libc makes the name and the directory at once: the MDT is chosen when it is there. */
PUBLIC char *mkdtemp(char *template)
{
    char *made = NEXT(mkdtemp)(template);
    struct tb_making making;
    int saved = errno;

    if (made && tb_attach() && dir_begin(&making, AT_FDCWD, made, true) == 0)
        dir_end(&making, AT_FDCWD, made, true);
    errno = saved;
    return made;
}

static int renaming(int from, const char *path, int to, const char *target, uint32_t *mdt)
{
    int saved = errno, rc = 0;
    uint32_t other;

    *mdt = TB_MAX_MDTS;
    if (tb_attach()) {
        rc = reach(from, path, mdt);
        rc = rc ? rc : reach(to, target, &other);
    }
    errno = rc ? -rc : saved;
    return rc;
}

static int renamed(int rc, uint32_t mdt)
{
    if (rc == 0 && mdt < TB_MAX_MDTS)
        mdt_count(mdt, MD_RENAME, 1);
    return rc;
}

PUBLIC int rename(const char *path, const char *target)
{
    uint32_t mdt;

    return renaming(AT_FDCWD, path, AT_FDCWD, target, &mdt) ? -1 : renamed(NEXT(rename)(path, target), mdt);
}

PUBLIC int renameat(int from, const char *path, int to, const char *target)
{
    uint32_t mdt;

    return renaming(from, path, to, target, &mdt) ? -1 : renamed(NEXT(renameat)(from, path, to, target), mdt);
}

PUBLIC int renameat2(int from, const char *path, int to, const char *target, unsigned flags)
{
    uint32_t mdt;

    if (renaming(from, path, to, target, &mdt))
        return -1;
    return renamed(NEXT(renameat2)(from, path, to, target, flags), mdt);
}
