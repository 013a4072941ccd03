/* Which directories are Lustre's: TARAZU_MOUNTS, or the mount table. */
#include "process/mounts.h"
#include "base/lines.h"
#include "base/rawsys.h"
#include "base/text.h"
#include "lustre.h"
#include "process/config.h"

#include <stdlib.h>
#include <sys/statfs.h>
#include <sys/vfs.h>

TZ_AFTER_MIDDLE struct tz_mounts tz_mounts;

static bool set(char *to, size_t size, uint32_t *length, const char *from, size_t n)
{
    if (n >= size)
        return false;
    memcpy(to, from, n);
    to[n] = '\0';
    *length = (uint32_t)n;
    return true;
}

/* NULL where it cannot be one, or there are too many. */
static struct tz_mount *add(const char *path, size_t path_length, const char *fs, size_t fs_length, const char *below,
                            size_t below_length)
{
    struct tz_mount *m = &tz_mounts.list[tz_mounts.count];

    if (tz_mounts.count == TZ_MOUNTS_MAX)
        return NULL;
    while (path_length > 1 && path[path_length - 1] == '/')
        path_length--;
    while (below_length && below[below_length - 1] == '/')
        below_length--;
    if (path_length < 2 || path[0] != '/' || fs_length == 0 ||
        !set(m->path, sizeof m->path, &m->path_length, path, path_length) ||
        !set(m->fs, sizeof m->fs, &m->fs_length, fs, fs_length) ||
        !set(m->below, sizeof m->below, &m->below_length, below, below_length))
        return NULL;
    tz_mounts.count++;
    tz_mounts.in_system[0] |= strncmp(m->path, "/proc/", 6) == 0;
    tz_mounts.in_system[1] |= strncmp(m->path, "/sys/", 5) == 0;
    tz_mounts.in_system[2] |= strncmp(m->path, "/dev/", 5) == 0;
    return m;
}

/* path=fsname, ':'-separated */
static void read_setting(const char *p)
{
    while (*p) {
        size_t length = tz_until(p, ':');
        const char *equals = memrchr(p, '=', length); /* a path may hold one */

        if (equals)
            add(p, (size_t)(equals - p), equals + 1, (size_t)(p + length - equals - 1), "", 0);
        p += length + (p[length] == ':');
    }
}

static bool octal(const char *text)
{
    return text[0] >= '0' && text[0] <= '3' && text[1] >= '0' && text[1] <= '7' && text[2] >= '0' && text[2] <= '7';
}

/* The kernel writes a blank, tab, newline and backslash in octal, \040 for one; in place. */
static size_t unescape(char *text, size_t length)
{
    size_t out = 0;

    for (size_t i = 0; i < length; i++, out++) {
        if (text[i] == '\\' && i + 3 < length && octal(text + i + 1)) {
            text[out] = (char)((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 | (text[i + 3] - '0'));
            i += 3;
        } else {
            text[out] = text[i];
        }
    }
    return out;
}

/* Of a file system of this node, and of one in which a mapping shows what other nodes store. */
static const char *const local[] = {"ext4", "xfs",    "overlay", "tmpfs",    "ext3",  "ext2", "btrfs",
                                    "zfs",  "rootfs", "ramfs",   "squashfs", "erofs", "f2fs", NULL};
static const char *const coherent[] = {"tmpfs", "ext2",    "ext3", "ext4",   "xfs",  "btrfs",
                                       "zfs",   "overlay", "f2fs", "lustre", "gpfs", NULL};

static bool is_one_of(const char *type, const char *const *types)
{
    while (*types && strcmp(type, *types) != 0)
        types++;
    return *types != NULL;
}

/* In the kernel's order, so that the last mount at or above the stop file decides where that lies. */
static size_t deepest;

static void find_stop(const char *point, size_t length, const char *type)
{
    bool root = length == 1 && point[0] == '/';

    if (length < deepest || strncmp(tz_config.stop, point, length) != 0 || (!root && tz_config.stop[length] != '/'))
        return;
    deepest = length;
    tz_mounts.stop_is_local = is_one_of(type, local);
}

/* In a changed root that is no mount point the table does not tell what "/" lies on; only then is it asked. */
static bool root_is_local(void)
{
    /* ext2 to ext4, xfs, overlay, tmpfs, btrfs, zfs, ramfs, squashfs, erofs, f2fs: linux/magic.h may be too old */
    static const uint32_t magics[] = {0xef53,     0x58465342, 0x794c7630, 0x01021994, 0x9123683e,
                                      0x2fc12fc1, 0x858458f6, 0x73717368, 0xe0f5e1e2, 0xf2f52010};
    struct statfs st;

    if (statfs("/", &st) != 0)
        return false;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if ((uint32_t)st.f_type == magics[i])
            return true;
    return false;
}

/* "nid[:nid]:/fsname[/directory]", and where the kernel says that it is mounted, without links on the way. */
static void add_lustre(char *device, const char *point, size_t length)
{
    char *fs = strstr(device, ":/"), *below;
    struct tz_mount *m;

    if (!fs)
        return;
    fs += 2;
    below = strchr(fs, '/');
    if (!below)
        below = fs + strlen(fs);
    m = add(point, length, fs, (size_t)(below - fs), below, strlen(below));
    if (m)
        set(m->real, sizeof m->real, &m->real_length, m->path, m->path_length);
}

/* "device mountpoint type options ..." */
static bool read_mount(char *line, char *end, void *wanted)
{
    char *point = memchr(line, ' ', (size_t)(end - line)), *type, *rest;
    size_t length;

    if (!point)
        return false;
    *point++ = '\0';
    type = memchr(point, ' ', (size_t)(end - point));
    rest = type ? memchr(type + 1, ' ', (size_t)(end - type - 1)) : NULL;
    if (!rest)
        return false;
    *type++ = *rest = '\0';
    length = unescape(point, (size_t)(type - 1 - point));
    if (tz_config.stop[0])
        find_stop(point, length, type);
    if (!*(bool *)wanted)
        return false;
    line[unescape(line, (size_t)(point - 1 - line))] = '\0';
    if (strcmp(type, "lustre") == 0)
        add_lustre(line, point, length);
    return false;
}

bool tz_mounts_read(void)
{
    const char *setting = getenv("TARAZU_MOUNTS");
    bool wanted = !setting || !*setting; /* else only where the stop file lies is wanted of the list */

    tz_mounts.count = 0; /* a page that is read before it is written costs two faults */
    if (!wanted)
        read_setting(setting);
    if (tz_config.stop[0] && tz_config.here.stop_type[0] && !wanted) {
        tz_mounts.stop_is_local = is_one_of(tz_config.here.stop_type, local);
        return tz_mounts.count != 0;
    }
    if (wanted || tz_config.stop[0])
        tz_lines(AT_FDCWD, "/proc/self/mounts", read_mount, &wanted);
    if (tz_config.stop[0] && !deepest)
        tz_mounts.stop_is_local = root_is_local();
    return tz_mounts.count != 0;
}

struct device {
    unsigned numbers[2];
    bool coherent;
};

/* "id parent major:minor root mountpoint options [fields] - type source options" */
static bool find_device(char *line, char *end, void *argument)
{
    struct device *device = argument;
    const char *p = line;
    char *type, *rest;

    for (int field = 0; field < 2; field++, p++)
        if (!(p = strchr(p, ' ')))
            return false;
    if (tz_read_number(&p, 10) != device->numbers[0] || *p++ != ':' || tz_read_number(&p, 10) != device->numbers[1])
        return false;
    type = strstr(p, " - ");
    rest = type ? memchr(type + 3, ' ', (size_t)(end - type - 3)) : NULL;
    if (rest) {
        *rest = '\0';
        device->coherent |= is_one_of(type + 3, coherent);
    }
    return true;
}

bool tz_mount_is_coherent(uint64_t dev)
{
    struct device device = {.numbers = {major(dev), minor(dev)}};

    if (dev == tz_config.here.map_dev && tz_config.here.map_type[0])
        return is_one_of(tz_config.here.map_type, coherent);
    tz_lines(AT_FDCWD, "/proc/self/mountinfo", find_device, &device);
    return device.coherent;
}

void tz_mount_doubt(struct tz_mount *mount, int error)
{
    struct statfs st;

    if ((error == EOPNOTSUPP || error == ENOTTY) && !tz_load(&mount->foreign) && statfs(mount->path, &st) == 0 &&
        (uint32_t)st.f_type != LUSTRE_SUPER_MAGIC)
        tz_store(&mount->foreign, 1);
}
