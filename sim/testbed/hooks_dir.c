/* Making directories: a new one gets a copy of its parent's default layout. */
#include "tb.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int made(int dirfd, const char *path, int rc)
{
    int fd, saved = errno;

    if (rc != 0 || !tb_attach() || !path_in_mount(dirfd, path, false))
        return rc;
    fd = (int)syscall(SYS_openat, dirfd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        sidecar_inherit(fd);
        real_close(fd);
    }
    errno = saved;
    return 0;
}

PUBLIC int mkdir(const char *path, mode_t mode)
{
    return made(AT_FDCWD, path, NEXT(mkdir)(path, mode));
}

PUBLIC int mkdirat(int dirfd, const char *path, mode_t mode)
{
    return made(dirfd, path, NEXT(mkdirat)(dirfd, path, mode));
}
