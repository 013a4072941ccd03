/* Stand-in liblustreapi: files. Calls plain open(), so that an interposer of open is entered again. */
#include "llapi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SETSTRIPE _IOW('f', 154, long)
#define GETOBDCOUNT _IOR('f', 168, long)
#define TESTBED_STATFS _IOC(_IOC_READ | _IOC_WRITE, 'f', 250, 40)
#define XATTR_MAX 65536
#define FS_NAME "lustre"

struct llapi_stripe_param {
    unsigned long long lsp_stripe_size;
    char *lsp_pool;
    int lsp_stripe_offset;
    uint32_t lsp_stripe_pattern;
    int lsp_stripe_count;
    bool lsp_is_specific, lsp_is_create;
    uint8_t lsp_max_inherit, lsp_max_inherit_rr;
    uint32_t lsp_osts[];
};

struct obd_statfs {
    uint64_t os_type, os_blocks, os_bfree, os_bavail, os_files, os_ffree;
    uint8_t os_fsid[40];
    uint32_t os_bsize, os_namelen;
    uint64_t os_maxbytes;
    uint32_t os_state, os_fprecreated, os_granted, os_spare[7];
};

struct obd_uuid {
    char uuid[40];
};

PUBLIC bool liblustreapi_initialized = true;
static int level = 3;

PUBLIC void llapi_msg_set_level(int new_level)
{
    level = new_level < 0 ? 0 : new_level > 6 ? 6 : new_level;
}
PUBLIC int llapi_msg_get_level(void);
PUBLIC int llapi_msg_get_level(void)
{
    return level;
}

PUBLIC void llapi_error(int message_level, int error, const char *format, ...)
{
    va_list arguments;

    if ((message_level & 7) > level)
        return;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (message_level & 0x10)
        fprintf(stderr, "\n");
    else
        fprintf(stderr, ": %s (%d)\n", strerror(abs(error)), abs(error));
}

PUBLIC int llapi_layout_set_by_fd(int fd, struct llapi_layout *layout)
{
    size_t size;
    void *lum;
    int rc, saved;

    if (!layout || llapi_layout_sanity(layout, false, false) != 0 || !(lum = llapi_to_lum(layout, &size))) {
        errno = EINVAL;
        return -1;
    }
    rc = fsetxattr(fd, XATTR_LOV, lum, size, 0);
    saved = errno;
    free(lum);
    errno = saved;
    return rc;
}

PUBLIC struct llapi_layout *llapi_layout_get_by_fd(int fd, int flags)
{
    struct llapi_layout *layout = NULL;
    void *blob = malloc(XATTR_MAX);
    ssize_t size = blob ? fgetxattr(fd, XATTR_LOV, blob, XATTR_MAX) : -1;

    if (size >= 0)
        layout = llapi_layout_get_by_xattr(blob, size, flags);
    else if (errno == EOPNOTSUPP)
        errno = ENOTTY;
    else if (errno == ENODATA)
        layout = llapi_layout_alloc();
    free(blob);
    return layout;
}

PUBLIC struct llapi_layout *llapi_layout_get_by_path(const char *path, int flags);
PUBLIC struct llapi_layout *llapi_layout_get_by_path(const char *path, int flags)
{
    int saved, fd = open(path, O_RDONLY | O_NONBLOCK);
    struct llapi_layout *layout;

    if (fd < 0)
        return NULL;
    layout = llapi_layout_get_by_fd(fd, flags);
    saved = errno;
    close(fd);
    errno = saved;
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
    fd = open(path, flags & O_CREAT ? flags | DELAY_CREATE : flags, mode);
    if (!layout || fd < 0)
        return fd;
    if (llapi_layout_set_by_fd(fd, (struct llapi_layout *)layout) < 0) {
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
    size_t size;
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
    return change(path, XATTR_LOV ".add", layout);
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
    rc = change(path, XATTR_LOV ".del", layout);
    llapi_layout_free(layout);
    return rc;
}

/* Returns a descriptor or a negative errno; sets the layout by the ioctl. */
PUBLIC int llapi_file_open_param(const char *name, int flags, mode_t mode, const struct llapi_stripe_param *param);
PUBLIC int llapi_file_open_param(const char *name, int flags, mode_t mode, const struct llapi_stripe_param *param)
{
    struct llapi_layout *layout = llapi_layout_alloc();
    struct llapi_comp *comp;
    void *lum = NULL;
    size_t size;
    int fd = -ENOMEM, rc;

    if (!layout)
        return fd;
    comp = llapi_current(layout);
    comp->stripe_size = param->lsp_stripe_size ? param->lsp_stripe_size : LLAPI_DEFAULT;
    comp->stripe_count = param->lsp_stripe_count > 0   ? (uint64_t)param->lsp_stripe_count
                         : param->lsp_stripe_count < 0 ? LLAPI_WIDE_MIN + (uint64_t)(-param->lsp_stripe_count - 1)
                                                       : LLAPI_DEFAULT;
    comp->offset = param->lsp_stripe_offset < 0 ? LLAPI_DEFAULT : (uint64_t)param->lsp_stripe_offset;
    comp->pattern = param->lsp_stripe_pattern == 0x201 ? LLAPI_OVERSTRIPING : LLAPI_RAID0;
    if (comp->stripe_size != LLAPI_DEFAULT && (comp->stripe_size % 65536 || comp->stripe_size >> 32))
        fd = -EINVAL;
    else if (!param->lsp_pool || llapi_layout_pool_name_set(layout, param->lsp_pool) == 0)
        fd = 0;
    else
        fd = -EINVAL;
    for (int i = 0; fd == 0 && param->lsp_is_specific && i < param->lsp_stripe_count; i++) {
        comp->pattern |= LLAPI_SPECIFIC;
        if (llapi_layout_ost_index_set(layout, i, param->lsp_osts[i]) != 0)
            fd = -EINVAL;
    }
    if (fd == 0 && !(lum = llapi_to_lum(layout, &size)))
        fd = -EINVAL;
    llapi_layout_free(layout);
    if (fd < 0)
        return fd;
    fd = open(name, flags | DELAY_CREATE, mode);
    if (fd < 0) {
        rc = -errno;
        llapi_error(2, rc, "unable to open '%s'", name);
        fd = rc;
    } else if (ioctl(fd, SETSTRIPE, lum) != 0) {
        rc = -errno;
        llapi_error(2 | 0x10, rc, "setstripe error for '%s': %s", name,
                    rc == -EEXIST ? "stripe already set" : strerror(-rc));
        close(fd);
        fd = rc;
    }
    free(lum);
    return fd;
}

PUBLIC int llapi_file_open(const char *name, int flags, int mode, unsigned long long stripe_size, int stripe_offset,
                           int stripe_count, int stripe_pattern);
PUBLIC int llapi_file_open(const char *name, int flags, int mode, unsigned long long stripe_size, int stripe_offset,
                           int stripe_count, int stripe_pattern)
{
    const struct llapi_stripe_param param = {.lsp_stripe_size = stripe_size,
                                             .lsp_stripe_offset = stripe_offset,
                                             .lsp_stripe_count = stripe_count,
                                             .lsp_stripe_pattern = (uint32_t)stripe_pattern};

    return llapi_file_open_param(name, flags, (mode_t)mode, &param);
}

PUBLIC int llapi_file_create(const char *name, unsigned long long stripe_size, int stripe_offset, int stripe_count,
                             int stripe_pattern);
PUBLIC int llapi_file_create(const char *name, unsigned long long stripe_size, int stripe_offset, int stripe_count,
                             int stripe_pattern)
{
    int fd = llapi_file_open(name, O_CREAT | O_WRONLY, 0644, stripe_size, stripe_offset, stripe_count, stripe_pattern);

    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

static int count_targets(int fd, int is_mdt, int *count)
{
    *count = is_mdt;
    return ioctl(fd, GETOBDCOUNT, count) < 0 ? -errno : 0;
}

PUBLIC int llapi_get_obd_count(char *mount, int *count, int is_mdt);
PUBLIC int llapi_get_obd_count(char *mount, int *count, int is_mdt)
{
    int rc, fd = open(mount, O_RDONLY | O_DIRECTORY);

    if (fd < 0)
        return -errno;
    rc = count_targets(fd, is_mdt, count);
    close(fd);
    return rc;
}

/* -EOVERFLOW when the caller's array is too small; the count is told in any case. */
PUBLIC int llapi_lov_get_uuids(int fd, struct obd_uuid *uuids, int *ost_count);
PUBLIC int llapi_lov_get_uuids(int fd, struct obd_uuid *uuids, int *ost_count)
{
    int room = *ost_count, count, rc = count_targets(fd, 0, &count);

    if (rc)
        return rc;
    for (int i = 0; uuids && i < count && i < room; i++)
        snprintf(uuids[i].uuid, sizeof(uuids[i].uuid), FS_NAME "-OST%04x_UUID", i);
    *ost_count = count;
    return uuids && room < count ? -EOVERFLOW : 0;
}

/* `type`: 2 = an OST (LL_STATFS_LOV). -ENODEV ends an iteration over the targets. */
PUBLIC int llapi_obd_fstatfs(int fd, uint32_t type, uint32_t index, struct obd_statfs *stat, struct obd_uuid *uuid);
PUBLIC int llapi_obd_fstatfs(int fd, uint32_t type, uint32_t index, struct obd_statfs *stat, struct obd_uuid *uuid)
{
    uint64_t data[5] = {index};

    if ((type & 3) != 2)
        return -ENODEV;
    if (ioctl(fd, TESTBED_STATFS, data) != 0)
        return -errno;
    memset(stat, 0, sizeof(*stat));
    stat->os_bsize = 4096;
    stat->os_blocks = data[1] / 4096;
    stat->os_bfree = data[2] / 4096;
    stat->os_bavail = data[3] / 4096;
    stat->os_files = stat->os_ffree = data[4];
    stat->os_namelen = 255;
    snprintf(uuid->uuid, sizeof(uuid->uuid), FS_NAME "-OST%04x_UUID", index);
    return 0;
}

PUBLIC int llapi_obd_statfs(char *path, uint32_t type, uint32_t index, struct obd_statfs *stat, struct obd_uuid *uuid);
PUBLIC int llapi_obd_statfs(char *path, uint32_t type, uint32_t index, struct obd_statfs *stat, struct obd_uuid *uuid)
{
    int rc, fd = open(path, O_RDONLY);

    if (fd < 0)
        return -ENODEV;
    rc = llapi_obd_fstatfs(fd, type, index, stat, uuid);
    close(fd);
    return rc;
}
