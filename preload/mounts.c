/* Which directories are Lustre's: TARAZU_MOUNTS, or the mount entries of type lustre. */
#include "config.h"
#include "rawsys.h"
#include "stop.h"

#include <sys/mman.h>

enum { MOUNTS_FILE_MAX = 1 << 20 };

static bool set(char *to, size_t size, uint32_t *length, const char *from, size_t n)
{
    if (n >= size)
        return false;
    memcpy(to, from, n);
    to[n] = '\0';
    *length = (uint32_t)n;
    return true;
}

static void add(const char *path, size_t path_length, const char *fs, size_t fs_length, const char *below,
                size_t below_length)
{
    struct tz_mount *m = &tz_config.mounts[tz_config.mount_count];

    if (tz_config.mount_count == TZ_MOUNTS_MAX)
        return;
    while (path_length > 1 && path[path_length - 1] == '/')
        path_length--;
    while (below_length && below[below_length - 1] == '/')
        below_length--;
    if (path_length < 2 || path[0] != '/' || fs_length == 0)
        return;
    if (set(m->path, sizeof m->path, &m->path_length, path, path_length) &&
        set(m->fs, sizeof m->fs, &m->fs_length, fs, fs_length) &&
        set(m->below, sizeof m->below, &m->below_length, below, below_length)) {
        tz_config.mount_count++;
        tz_config.in_system[0] |= strncmp(m->path, "/proc/", 6) == 0;
        tz_config.in_system[1] |= strncmp(m->path, "/sys/", 5) == 0;
        tz_config.in_system[2] |= strncmp(m->path, "/dev/", 5) == 0;
    }
}

/* path=fsname, ':'-separated */
static void read_setting(const char *p)
{
    while (*p) {
        size_t length = strcspn(p, ":");
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

/* "nid[:nid]:/fsname[/directory] mountpoint type ..." */
static void read_line(char *line, char *end, bool lustre)
{
    char *point = memchr(line, ' ', (size_t)(end - line)), *type, *rest, *fs, *below;
    size_t length;

    if (!point)
        return;
    *point++ = '\0';
    type = memchr(point, ' ', (size_t)(end - point));
    rest = type ? memchr(type + 1, ' ', (size_t)(end - type - 1)) : NULL;
    if (!rest)
        return;
    *type++ = *rest = '\0';
    length = unescape(point, (size_t)(type - 1 - point));
    if (tz_config.stop[0])
        tz_stop_mounted(point, length, type);
    if (!lustre || strcmp(type, "lustre") != 0)
        return;
    line[unescape(line, (size_t)(point - 1 - line))] = '\0';
    fs = strstr(line, ":/");
    if (!fs)
        return;
    fs += 2;
    below = strchr(fs, '/');
    if (!below)
        below = fs + strlen(fs);
    add(point, length, fs, (size_t)(below - fs), below, strlen(below));
}

/* `lustre`: its mounts are wanted, else only where the stop file lies. */
static void read_proc(bool lustre)
{
    int fd = tz_sys_open("/proc/self/mounts", O_RDONLY | O_CLOEXEC, 0);
    char *text, *p, *end;
    size_t length = 0;
    long n;

    if (fd < 0)
        return;
    text = mmap(NULL, MOUNTS_FILE_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text != MAP_FAILED) {
        while (length < MOUNTS_FILE_MAX - 1 &&
               (n = syscall(SYS_read, fd, text + length, MOUNTS_FILE_MAX - 1 - length)) > 0)
            length += (size_t)n;
        for (p = text; (end = memchr(p, '\n', (size_t)(text + length - p))) != NULL; p = end + 1) {
            *end = '\0';
            read_line(p, end, lustre);
        }
        munmap(text, MOUNTS_FILE_MAX);
    }
    tz_sys_close(fd);
}

void tz_mounts_read(const char *setting)
{
    if (setting && *setting)
        read_setting(setting);
    if (!setting || !*setting || tz_config.stop[0])
        read_proc(!setting || !*setting);
}
