/* Stand-in liblustreapi: files. Calls plain open(), so that an interposer of open is entered again. */
#include "tb_llapi.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

/* What is printed here the real one prints at any level. */
PUBLIC void llapi_msg_set_level(int level);
PUBLIC void llapi_msg_set_level(int level)
{
    (void)level;
}

static int set_by_fd(int fd, struct llapi_layout *layout)
{
    ssize_t size;
    void *lum;
    int rc, saved;

    if (!layout || llapi_layout_sanity(layout, false, false) != 0 || !(lum = llapi_to_lum(layout, &size))) {
        errno = EINVAL;
        return -1;
    }
    rc = fsetxattr(fd, XATTR_LUSTRE_LOV, lum, size, 0);
    saved = errno;
    free(lum);
    errno = saved;
    return rc;
}

PUBLIC struct llapi_layout *llapi_layout_get_by_fd(int fd, int flags)
{
    struct llapi_layout *layout = NULL;
    void *blob = malloc(XATTR_SIZE_MAX);
    ssize_t size = blob ? fgetxattr(fd, XATTR_LUSTRE_LOV, blob, XATTR_SIZE_MAX) : -1;

    if (size >= 0)
        layout = llapi_layout_get_by_xattr(blob, size, flags);
    else if (errno == EOPNOTSUPP)
        errno = ENOTTY;
    else if (errno == ENODATA)
        layout = llapi_layout_alloc();
    free(blob);
    return layout;
}

PUBLIC int llapi_layout_file_open(const char *path, int flags, mode_t mode, const struct llapi_layout *layout);
PUBLIC int llapi_layout_file_open(const char *path, int flags, mode_t mode, const struct llapi_layout *layout)
{
    int fd, rc, saved;

    if (!path || (layout && layout->magic != LLAPI_LAYOUT_MAGIC)) {
        errno = EINVAL;
        return -1;
    }
    rc = layout ? llapi_layout_sanity((struct llapi_layout *)layout, false, false) : 0;
    if (rc) {
        llapi_layout_sanity_perror(rc);
        return -1;
    }
    fd = open(path, flags & O_CREAT ? flags | O_LOV_DELAY_CREATE : flags, mode);
    if (!layout || fd < 0)
        return fd;
    if (set_by_fd(fd, (struct llapi_layout *)layout) < 0) {
        saved = errno;
        close(fd); /* the empty file stays behind */
        errno = saved;
        fd = -1;
    }
    errno = errno == EOPNOTSUPP ? ENOTTY : errno;
    return fd;
}

PUBLIC int llapi_layout_file_create(const char *path, int flags, int mode, const struct llapi_layout *layout);
PUBLIC int llapi_layout_file_create(const char *path, int flags, int mode, const struct llapi_layout *layout)
{
    return llapi_layout_file_open(path, flags | O_CREAT | O_EXCL, (mode_t)mode, layout);
}

static int change(const char *path, const char *attribute, const struct llapi_layout *layout)
{
    int saved, rc, fd = open(path, O_RDWR);
    ssize_t size;
    void *lum;

    if (fd < 0)
        return -1;
    lum = layout->composite ? llapi_to_lum(layout, &size) : NULL;
    if (!lum)
        errno = EINVAL;
    rc = lum ? fsetxattr(fd, attribute, lum, size, 0) : -1;
    saved = errno;
    free(lum);
    close(fd);
    errno = saved;
    return rc;
}

PUBLIC int llapi_layout_file_comp_add(const char *path, const struct llapi_layout *layout);
PUBLIC int llapi_layout_file_comp_add(const char *path, const struct llapi_layout *layout)
{
    if (!path || !llapi_current(layout)) {
        errno = EINVAL;
        return -1;
    }
    return change(path, XATTR_LUSTRE_LOV ".add", layout);
}

PUBLIC int llapi_layout_file_comp_del(const char *path, uint32_t id, uint32_t flags);
PUBLIC int llapi_layout_file_comp_del(const char *path, uint32_t id, uint32_t flags)
{
    struct llapi_layout *layout;
    int rc;

    if (!path || (id == 0) == (flags == 0)) {
        errno = EINVAL;
        return -1;
    }
    layout = llapi_layout_alloc();
    if (!layout)
        return -1;
    layout->composite = true;
    layout->comp[0].id = id;
    layout->comp[0].flags = flags;
    rc = change(path, XATTR_LUSTRE_LOV ".del", layout);
    llapi_layout_free(layout);
    return rc;
}
