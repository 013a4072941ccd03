/* Layouts as applications see them: the lustre.lov attribute and the ioctls. */
#include "tb.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PASS (-2)
#define IOC_SETSTRIPE _IOW('f', 154, long)
#define IOC_SETSTRIPE_NEW _IOC(_IOC_READ | _IOC_WRITE, 'f', 154, 32)
#define IOC_GETSTRIPE _IOW('f', 155, long)
#define IOC_GETSTRIPE_NEW _IOC(_IOC_READ, 'f', 155, 32)
#define IOC_GETOBDCOUNT _IOR('f', 168, long)
#define IOC_TESTBED_STATFS _IOC(_IOC_READ | _IOC_WRITE, 'f', 250, 40) /* between the stand-in llapi and us only */

static int result(ssize_t rc)
{
    if (rc >= 0)
        return (int)rc;
    errno = -(int)rc;
    return -1;
}

static bool is_layout(const char *name)
{
    return strncmp(name, "lustre.lov", 10) == 0 || strcmp(name, "trusted.lov") == 0;
}

static ssize_t get(int fd, const char *name, void *value, size_t size)
{
    struct stat st;

    if (!is_layout(name) || !fd_in_mount(fd, &st))
        return PASS;
    if (strcmp(name, "lustre.lov") != 0 && !(name[0] == 't' && geteuid() == 0))
        return -ENODATA;
    return layout_get(fd, value, size);
}

static ssize_t set(int fd, const char *name, const void *value, size_t size)
{
    struct stat st;

    if (!is_layout(name) || !fd_in_mount(fd, &st))
        return PASS;
    if (S_ISDIR(st.st_mode))
        return strcmp(name, "lustre.lov") == 0 ? layout_set_dir(fd, value, size) : -EOPNOTSUPP;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if (strcmp(name, "lustre.lov") == 0)
        return layout_set(fd, &st, value, size, VIA_XATTR);
    if (strcmp(name, "lustre.lov.add") == 0)
        return layout_add(fd, &st, value, size);
    if (strcmp(name, "lustre.lov.del") == 0)
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

    if (!is_layout(name) || !tb_attach() || (fd = open_path(path, follow)) < 0)
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

#define HOOK(ours, call)                                                                                               \
    {                                                                                                                  \
        ssize_t rc_ = tb_attach() ? ours : PASS;                                                                       \
        return rc_ == PASS ? call : result(rc_);                                                                       \
    }

PUBLIC ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
    HOOK(get(fd, name, value, size), NEXT(fgetxattr)(fd, name, value, size))

        PUBLIC ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
            HOOK(get_path(path, name, value, size, true), NEXT(getxattr)(path, name, value, size))

                PUBLIC ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
                    HOOK(get_path(path, name, value, size, false), NEXT(lgetxattr)(path, name, value, size))

                        PUBLIC int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
                            HOOK(set(fd, name, value, size), NEXT(fsetxattr)(fd, name, value, size, flags))

                                PUBLIC
    int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
        HOOK(set_path(path, name, value, size, true), NEXT(setxattr)(path, name, value, size, flags))

            PUBLIC int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
                HOOK(set_path(path, name, value, size, false), NEXT(lsetxattr)(path, name, value, size, flags))

                    PUBLIC int fremovexattr(int fd, const char *name)
                        HOOK(discard(fd, name), NEXT(fremovexattr)(fd, name))

                            PUBLIC int removexattr(const char *path, const char *name)
                                HOOK(discard_path(path, name, true), NEXT(removexattr)(path, name))

                                    PUBLIC int lremovexattr(const char *path, const char *name)
                                        HOOK(discard_path(path, name, false), NEXT(lremovexattr)(path, name))

    /* How long the structure is that the caller passes, by its magic. */
    static size_t user_size(const char *data)
{
    uint32_t magic, size;
    uint16_t count;

    memcpy(&magic, data, 4);
    if (magic == MAGIC_COMP_V1) {
        memcpy(&size, data + 4, 4);
        return size;
    }
    memcpy(&count, data + 28, 2);
    if (magic == MAGIC_SPECIFIC)
        return 48 + (count <= TB_MAX_STRIPES ? count * 24u : 0);
    return magic == MAGIC_V3 ? 48 : 32;
}

static int set_stripe(int fd, const struct stat *st, const void *data)
{
    if (S_ISDIR(st->st_mode))
        return layout_set_dir(fd, data, user_size(data));
    return layout_set(fd, st, data, user_size(data), VIA_IOCTL);
}

/* The caller says in lmm_stripe_count how much room there is; with none only the head is copied. */
static int get_stripe(int fd, char *out)
{
    char blob[TB_BLOB_MAX];
    ssize_t size = layout_get(fd, blob, sizeof(blob));
    uint32_t magic;
    uint16_t count;
    size_t room;

    if (size < 0)
        return (int)size;
    memcpy(&magic, out, 4);
    memcpy(&count, out + 28, 2);
    if (magic == MAGIC_COMP_V1)
        room = user_size(out);
    else
        room = (magic == MAGIC_V3 ? 48 : 32) + count * 24u;
    if (room < (size_t)size && count != 0)
        return -EOVERFLOW;
    memcpy(out, blob, room < (size_t)size ? room : (size_t)size);
    return 0;
}

/* index and type in, sizes out: u64 index, total, free, avail, files free. */
static int target_statfs(uint64_t *data)
{
    const struct tb_ost *ost = &tb_state->ost[data[0] % TB_MAX_OSTS];

    if (data[0] >= tb_state->n_osts)
        return -ENODEV;
    if (ost->flags & OST_INACTIVE)
        return -EIO;
    data[1] = ost->total;
    data[2] = tb_ost_free(ost);
    data[3] = tb_ost_avail(ost);
    data[4] = 1u << 20;
    return 0;
}

static int ours(int fd, unsigned long request, void *argument)
{
    struct stat st;
    int is_mdt;

    if (!fd_in_mount(fd, &st))
        return PASS;
    switch (request) {
    case IOC_SETSTRIPE:
    case IOC_SETSTRIPE_NEW:
        return set_stripe(fd, &st, argument);
    case IOC_GETSTRIPE:
    case IOC_GETSTRIPE_NEW:
        return get_stripe(fd, argument);
    case IOC_GETOBDCOUNT:
        memcpy(&is_mdt, argument, sizeof(is_mdt));
        *(int *)argument = is_mdt ? 1 : (int)tb_state->n_osts;
        return 0;
    case IOC_TESTBED_STATFS:
        return target_statfs(argument);
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
