/* Layouts as applications see them: the lustre.lov attribute and the ioctls. */
#include "tb.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PASS (-4096) /* no errno */

static int result(ssize_t rc)
{
    if (rc >= 0)
        return (int)rc;
    errno = -(int)rc;
    return -1;
}

static bool is_layout(const char *name)
{
    return strncmp(name, XATTR_LUSTRE_LOV, strlen(XATTR_LUSTRE_LOV)) == 0 || strcmp(name, "trusted.lov") == 0;
}

static bool is_default_lmv(const char *name)
{
    return strcmp(name, "trusted.dmv") == 0;
}

/* A directory's own default of new subdirectories, which root alone is shown. */
static ssize_t get_default_lmv(int fd, void *value, size_t size)
{
    struct tb_place place;

    place_load(fd, &place);
    if (geteuid() != 0 || !place.has_default)
        return -ENODATA;
    if (size > 0 && size < sizeof(place.dmv))
        return -ERANGE;
    if (size > 0)
        memcpy(value, &place.dmv, sizeof(place.dmv));
    return sizeof(place.dmv);
}

static ssize_t get(int fd, const char *name, void *value, size_t size)
{
    struct stat st;
    ssize_t got;

    if (is_default_lmv(name) && fd_in_mount(fd, &st) && S_ISDIR(st.st_mode))
        return get_default_lmv(fd, value, size);
    if (!is_layout(name) || !fd_in_mount(fd, &st))
        return PASS;
    if (strcmp(name, XATTR_LUSTRE_LOV) != 0 && !(name[0] == 't' && geteuid() == 0))
        return -ENODATA;
    got = layout_get(fd, value, size);
    if (got > 0 && size > 0 && name[0] == 'l')
        lov_hide_starts(value);
    return got;
}

static ssize_t set(int fd, const char *name, const void *value, size_t size)
{
    struct stat st;

    if (!is_layout(name) || !fd_in_mount(fd, &st))
        return PASS;
    if (S_ISDIR(st.st_mode))
        return strcmp(name, XATTR_LUSTRE_LOV) == 0 ? layout_set_dir(fd, value, size) : -EOPNOTSUPP;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if (strcmp(name, XATTR_LUSTRE_LOV) == 0)
        return layout_set(fd, &st, value, size, VIA_XATTR);
    if (strcmp(name, XATTR_LUSTRE_LOV ".add") == 0)
        return layout_add(fd, &st, value, size);
    if (strcmp(name, XATTR_LUSTRE_LOV ".del") == 0)
        return layout_del(fd, &st, value, size);
    return -EOPNOTSUPP;
}

static ssize_t discard(int fd, const char *name)
{
    struct stat st;
    int rc;

    if (!is_layout(name) || !fd_in_mount(fd, &st))
        return PASS;
    if (!S_ISDIR(st.st_mode))
        return -EPERM; /* a file keeps the layout that it has */
    if (geteuid() != 0 && geteuid() != st.st_uid)
        return -EPERM;
    rc = sidecar_remove(fd);
    return rc == -ENOENT ? -ENODATA : rc;
}

static int open_path(const char *path, bool follow)
{
    return path ? real_open(path, O_PATH | (follow ? 0 : O_NOFOLLOW), 0) : -1;
}

static ssize_t get_path(const char *path, const char *name, void *value, size_t size, bool follow)
{
    ssize_t rc;
    int fd;

    if (!(is_layout(name) || is_default_lmv(name)) || !tb_attach() || (fd = open_path(path, follow)) < 0)
        return PASS;
    rc = get(fd, name, value, size);
    real_close(fd);
    return rc;
}

static ssize_t set_path(const char *path, const char *name, const void *value, size_t size, bool follow)
{
    ssize_t rc;
    int fd;

    if (!is_layout(name) || !tb_attach() || (fd = open_path(path, follow)) < 0)
        return PASS;
    rc = set(fd, name, value, size);
    real_close(fd);
    return rc;
}

static ssize_t discard_path(const char *path, const char *name, bool follow)
{
    ssize_t rc;
    int fd;

    if (!is_layout(name) || !tb_attach() || (fd = open_path(path, follow)) < 0)
        return PASS;
    rc = discard(fd, name);
    real_close(fd);
    return rc;
}

#define HOOK(type, hook, parameters, arguments, ours)                                                                  \
    PUBLIC type hook parameters                                                                                        \
    {                                                                                                                  \
        ssize_t rc = tb_attach() ? ours : PASS;                                                                        \
                                                                                                                       \
        return rc == PASS ? NEXT(hook) arguments : result(rc);                                                         \
    }

HOOK(ssize_t, fgetxattr, (int fd, const char *name, void *value, size_t size), (fd, name, value, size),
     get(fd, name, value, size))
HOOK(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size), (path, name, value, size),
     get_path(path, name, value, size, true))
HOOK(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size), (path, name, value, size),
     get_path(path, name, value, size, false))
HOOK(int, fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags),
     (fd, name, value, size, flags), set(fd, name, value, size))
HOOK(int, setxattr, (const char *path, const char *name, const void *value, size_t size, int flags),
     (path, name, value, size, flags), set_path(path, name, value, size, true))
HOOK(int, lsetxattr, (const char *path, const char *name, const void *value, size_t size, int flags),
     (path, name, value, size, flags), set_path(path, name, value, size, false))
HOOK(int, fremovexattr, (int fd, const char *name), (fd, name), discard(fd, name))
HOOK(int, removexattr, (const char *path, const char *name), (path, name), discard_path(path, name, true))
HOOK(int, lremovexattr, (const char *path, const char *name), (path, name), discard_path(path, name, false))

static int set_stripe(int fd, const struct stat *st, const void *data)
{
    if (S_ISDIR(st->st_mode))
        return layout_set_dir(fd, data, lov_passed_size(data, false));
    return layout_set(fd, st, data, lov_passed_size(data, false), VIA_IOCTL);
}

/* The caller says in lmm_stripe_count how much room there is; with none only the head is copied. Of a directory all is
 * copied, whatever the caller has room for. */
static int get_stripe(int fd, const struct stat *st, void *out)
{
    bool head_only = ((const struct lov_user_md_v1 *)out)->lmm_stripe_count == 0;
    size_t room = lov_passed_size(out, true);
    char blob[XATTR_SIZE_MAX];
    ssize_t size = layout_get(fd, blob, sizeof(blob));

    if (size < 0)
        return (int)size;
    if (S_ISDIR(st->st_mode))
        room = XATTR_SIZE_MAX;
    if (room < (size_t)size && !head_only)
        return -EOVERFLOW;
    memcpy(out, blob, room < (size_t)size ? room : (size_t)size);
    return 0;
}

static int ours(int fd, unsigned long request, void *argument)
{
    struct stat st;

    if (!fd_in_mount(fd, &st))
        return PASS;
    if (syscall(SYS_fcntl, fd, F_GETFL) & O_PATH)
        return -EBADF;
    if (request == LL_IOC_GET_MDTIDX) {
        *(int *)argument = (int)place_of_fd(fd);
        return 0;
    }
    if (S_ISDIR(st.st_mode) && request == LL_IOC_LMV_SETSTRIPE)
        return lmv_set_stripe(fd, argument);
    if (S_ISDIR(st.st_mode) && request == LL_IOC_LMV_GETSTRIPE)
        return lmv_get_stripe(fd, argument);
    if (S_ISDIR(st.st_mode) && request == LL_IOC_LMV_SET_DEFAULT_STRIPE)
        return lmv_set_default(fd, argument);
    switch (request) {
    case LL_IOC_LOV_SETSTRIPE:
    case LL_IOC_LOV_SETSTRIPE_NEW:
        return set_stripe(fd, &st, argument);
    case LL_IOC_LOV_GETSTRIPE:
    case LL_IOC_LOV_GETSTRIPE_NEW:
        return get_stripe(fd, &st, argument);
    default:
        return -ENOTTY;
    }
}

PUBLIC int ioctl(int fd, unsigned long request, ...)
{
    bool lustre = _IOC_TYPE(request) == 'f' && (_IOC_NR(request) >= 154 && _IOC_NR(request) <= 250);
    va_list arguments;
    void *argument;
    int rc;

    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    rc = lustre && argument && tb_attach() ? ours(fd, request, argument) : PASS;
    return rc == PASS ? NEXT(ioctl)(fd, request, argument) : result(rc);
}
