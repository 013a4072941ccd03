/* Where the MDS keeps layouts: TB/mds/layout/<inode>, valid only for the inode that it was written for. */
#include "tb.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIDECAR_MAGIC "TBLAY002"

/* Then the blob, then for every component u16 n and n × u16: the list that the MDS keeps for later. */
struct sidecar_head {
    char magic[8];
    uint64_t ino, handle;
    int64_t btime_ns;
    uint32_t file_oid, blob_size, is_file, n_comps, client, pad;
};

/* Layouts are large and hooks run on any stack: these belong to whoever holds the lock. */
struct tb_layout *layout_scratch(unsigned slot)
{
    static struct tb_layout scratch[3];

    return &scratch[slot];
}

static char buffer[2 * XATTR_SIZE_MAX];

static uint64_t handle_hash(int fd)
{
    struct {
        struct file_handle head;
        unsigned char bytes[MAX_HANDLE_SZ];
    } handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
    uint64_t hash = 0xcbf29ce484222325u;
    int mount_id;

    if (syscall(SYS_name_to_handle_at, fd, "", &handle.head, &mount_id, AT_EMPTY_PATH) != 0)
        return 0;
    for (unsigned i = 0; i < handle.head.handle_bytes; i++)
        hash = (hash ^ handle.head.f_handle[i]) * 0x100000001b3u;
    return hash;
}

int sidecar_identify(int fd, struct identity *identity)
{
    struct statx stx;

    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &stx) != 0)
        return -errno;
    identity->ino = stx.stx_ino;
    identity->btime_ns = stx.stx_mask & STATX_BTIME ? stx.stx_btime.tv_sec * 1000000000ll + stx.stx_btime.tv_nsec : 0;
    identity->handle = handle_hash(fd);
    return 0;
}

static void sidecar_path(uint64_t ino, char *path, size_t size)
{
    snprintf(path, size, "%s/layout/%llu", tb_mds, (unsigned long long)ino);
}

static int decode_lists(const char *data, size_t size, struct tb_layout *layout)
{
    size_t at = 0;

    for (unsigned i = 0; i < layout->n_comps; i++) {
        struct tb_comp *comp = &layout->comp[i];

        if (size < at + 2)
            return -EIO;
        memcpy(&comp->n_list, data + at, 2);
        at += 2;
        if (comp->n_list > TB_MAX_STRIPES || size < at + 2u * comp->n_list)
            return -EIO;
        memcpy(comp->list, data + at, 2u * comp->n_list);
        at += 2u * comp->n_list;
    }
    return 0;
}

/* -ENODATA: this inode has no layout (or the sidecar is of an earlier inode with that number). Under the lock. */
int sidecar_load(int fd, struct tb_layout *layout)
{
    char path[PATH_MAX + 64], *data = buffer;
    struct identity identity;
    struct sidecar_head head;
    struct stat st;
    ssize_t got;
    int in, rc;

    if (fstat(fd, &st) != 0)
        return -errno;
    sidecar_path(st.st_ino, path, sizeof(path));
    in = real_open(path, O_RDONLY, 0);
    if (in < 0)
        return errno == ENOENT ? -ENODATA : -errno;
    got = syscall(SYS_read, in, data, sizeof(buffer));
    real_close(in);
    rc = sidecar_identify(fd, &identity);
    if (rc)
        return rc;
    if (got < (ssize_t)sizeof(head))
        return -ENODATA;
    memcpy(&head, data, sizeof(head));
    if (memcmp(head.magic, SIDECAR_MAGIC, 8) != 0 || head.ino != identity.ino || head.btime_ns != identity.btime_ns ||
        head.handle != identity.handle)
        return -ENODATA;
    if (head.blob_size > got - sizeof(head))
        return -EIO;
    rc = blob_decode(data + sizeof(head), head.blob_size, layout, head.is_file ? BLOB_FILE : BLOB_DIR);
    if (rc)
        return -EIO;
    layout->file_oid = head.file_oid;
    layout->client = head.client;
    return decode_lists(data + sizeof(head) + head.blob_size, got - sizeof(head) - head.blob_size, layout);
}

/* Under the lock. One write() replaces the head of the file; what a longer one left behind it is not read. */
int sidecar_write(const char *path, const void *data, size_t size)
{
    int rc, out = real_open(path, O_WRONLY, 0);

    if (out < 0 && (errno == ENOENT || errno == EACCES)) {
        syscall(SYS_unlink, path); /* left by one that was killed before others could write it */
        out = real_open(path, O_WRONLY | O_CREAT, 0666);
        if (out >= 0)
            syscall(SYS_fchmod, out, 0666); /* programs that give up root extend their files too */
    }
    if (out < 0)
        return -errno;
    rc = syscall(SYS_write, out, data, size) == (ssize_t)size ? 0 : -EIO;
    real_close(out);
    return rc;
}

int sidecar_store(int fd, const struct tb_layout *layout, bool file)
{
    char path[PATH_MAX + 64], *data = buffer;
    struct sidecar_head head = {.magic = SIDECAR_MAGIC, .is_file = file, .n_comps = layout->n_comps};
    struct identity identity;
    ssize_t size;
    size_t at;
    int rc = sidecar_identify(fd, &identity);

    if (rc)
        return rc;
    size = blob_encode(layout, data + sizeof(head), XATTR_SIZE_MAX, file);
    if (size < 0)
        return -ENOSPC;
    head.ino = identity.ino;
    head.handle = identity.handle;
    head.btime_ns = identity.btime_ns;
    head.file_oid = layout->file_oid;
    head.client = layout->client;
    head.blob_size = size;
    memcpy(data, &head, sizeof(head));
    at = sizeof(head) + size;
    for (unsigned i = 0; i < layout->n_comps; i++) {
        const struct tb_comp *comp = &layout->comp[i];
        uint16_t kept = comp->flags & LCME_FL_INIT ? 0 : comp->n_list;

        memcpy(data + at, &kept, 2);
        memcpy(data + at + 2, comp->list, 2u * kept);
        at += 2 + 2u * kept;
    }
    sidecar_path(identity.ino, path, sizeof(path));
    return sidecar_write(path, data, at);
}

int sidecar_remove(int fd)
{
    char path[PATH_MAX + 64];
    struct stat st;

    if (fstat(fd, &st) != 0)
        return -errno;
    sidecar_path(st.st_ino, path, sizeof(path));
    return syscall(SYS_unlink, path) == 0 ? 0 : -errno;
}

/* The directory in which `fd` lies, as a descriptor; -EXDEV for the root itself and outside of the mount. */
int sidecar_parent(int fd, bool *is_root)
{
    char link[64], path[PATH_MAX], *slash;
    ssize_t length;
    int parent;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = syscall(SYS_readlink, link, path, sizeof(path) - 1);
    if (length < 0)
        return -errno;
    path[length] = 0;
    slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) < strlen(tb_mount) || strncmp(path, tb_mount, strlen(tb_mount)) != 0)
        return -EXDEV;
    *slash = 0;
    *is_root = strcmp(path, tb_mount) == 0;
    parent = real_open(path, O_PATH | O_DIRECTORY, 0);
    return parent < 0 ? -errno : parent;
}

static int load_of(int fd, struct tb_layout *layout)
{
    int rc;

    if (fd < 0)
        return -ENODATA;
    rc = sidecar_load(fd, layout);
    real_close(fd);
    return rc;
}

int sidecar_of_root(struct tb_layout *layout)
{
    return load_of(real_open(tb_mount, O_PATH | O_DIRECTORY, 0), layout);
}

/* The default layout that a new file gets: that of its directory, else that of the root, else -ENODATA. */
int sidecar_default_for(int fd, struct tb_layout *layout)
{
    bool is_root = false;
    int rc = load_of(sidecar_parent(fd, &is_root), layout);

    return rc == -ENODATA && !is_root ? sidecar_of_root(layout) : rc;
}

/* A new directory gets a copy of the default of the one that it was made in; that of the root is not copied, it is
 * looked up when a file is made. */
int sidecar_inherit(int fd)
{
    struct tb_layout *layout = layout_scratch(0);
    bool is_root = false;
    int parent, rc;

    tb_lock();
    parent = sidecar_parent(fd, &is_root);
    if (is_root && parent >= 0)
        real_close(parent);
    rc = is_root ? -ENODATA : load_of(parent, layout);
    if (rc == 0)
        rc = sidecar_store(fd, layout, false);
    tb_unlock();
    return rc;
}
