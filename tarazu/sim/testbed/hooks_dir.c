/* Making directories: a new one gets a copy of its parent's default layout. */
#include "tb.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Under the lock: who finds the directory made must find its default, too. */
static bool begin(int dirfd, const char *path)
{
    char name[PATH_MAX];
    size_t length = path ? strlen(path) : 0;
    bool ours;

    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length == 0 || length >= sizeof(name))
        return false;
    memcpy(name, path, length);
    name[length] = 0;
    ours = path_in_mount(dirfd, name, true);
    if (ours)
        tb_lock();
    return ours;
}

static int end(int dirfd, const char *path, bool ours, int rc)
{
    int fd, saved = errno;

    if (!ours)
        return rc;
    if (rc == 0) {
        fd = (int)syscall(SYS_openat, dirfd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            sidecar_inherit(fd);
            real_close(fd);
        }
    }
    tb_unlock();
    errno = saved;
    return rc;
}

PUBLIC int mkdir(const char *path, mode_t mode)
{
    bool ours = begin(AT_FDCWD, path);

    return end(AT_FDCWD, path, ours, NEXT(mkdir)(path, mode));
}

PUBLIC int mkdirat(int dirfd, const char *path, mode_t mode)
{
    bool ours = begin(dirfd, path);

    return end(dirfd, path, ours, NEXT(mkdirat)(dirfd, path, mode));
}
