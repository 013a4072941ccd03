/*
 * The group's directory by /proc/self/cgroup and the mount table, and the files in it and in those above it: of version
 * 2, or of version 1 where that has the memory, as in a hybrid.
 */
#include "process/cgroup.h"
#include "base/lines.h"
#include "base/lock.h"
#include "base/rawsys.h"
#include "base/text.h"

enum { PATH_ROOM = 1024, DEEPEST = 32 };

static const struct names {
    const char *limits[2], *usage, *reclaimable[2];
} version_1 = {{"memory.limit_in_bytes"}, "memory.usage_in_bytes", {"total_inactive_file ", "total_active_file "}},
  version_2 = {{"memory.max", "memory.high"}, "memory.current", {"inactive_file ", "active_file "}};

/* Written once, under the lock. */
TZ_LARGE static struct {
    struct tz_lock lock;
    int known;                 /* atomic: 1 found, -1 there is none */
    const struct names *names; /* of the files */
    char path[PATH_ROOM];      /* of the group, as /proc/self/cgroup has it */
    char directory[PATH_ROOM]; /* the same below the mount */
    int above;                 /* directories between it and the mount */
} group;

static bool is_listed(const char *list, const char *end, const char *word)
{
    size_t length = strlen(word);

    for (; list < end; list += tz_until(list, ',') + 1)
        if ((size_t)(end - list) >= length && memcmp(list, word, length) == 0 &&
            (list + length == end || list[length] == ','))
            return true;
    return false;
}

/* "4:memory:/path", "0::/path" */
static bool find_path(char *line, char *end, void *argument)
{
    char *list = strchr(line, ':'), *path = list ? strchr(++list, ':') : NULL;
    bool first = path && is_listed(list, path, "memory");

    (void)argument;
    if (!path++ || (path - 1 != list && !first) || (size_t)(end - path) >= PATH_ROOM)
        return false;
    memcpy(group.path, path, (size_t)(end - path) + 1);
    group.names = first ? &version_1 : &version_2;
    return first;
}

/* The part of the group's path below a mount's root; the mount itself where it is that of a container. */
static const char *below(const char *root)
{
    size_t length = strlen(root);

    if (length == 1)
        return group.path;
    return strncmp(group.path, root, length) == 0 && (group.path[length] == '/' || !group.path[length])
               ? group.path + length
               : "";
}

/* "id parent major:minor root mountpoint options [fields] - type source options" */
static bool find_mount(char *line, char *end, void *argument)
{
    char *fields[6], *type = strstr(line, " - "), *options;
    const char *rest;

    (void)argument;
    if (!type)
        return false;
    fields[0] = line;
    for (int i = 1; i < 6; i++) {
        fields[i] = strchr(fields[i - 1], ' ');
        if (!fields[i] || fields[i] >= type)
            return false;
        *fields[i]++ = '\0';
    }
    type += 3;
    options = strchr(type, ' ');
    options = options ? strchr(options + 1, ' ') : NULL;
    if (!options ||
        (group.names == &version_2 ? strncmp(type, "cgroup2 ", 8) != 0
                                   : strncmp(type, "cgroup ", 7) != 0 || !is_listed(options + 1, end, "memory")))
        return false;
    rest = below(fields[3]);
    group.above = 0;
    for (const char *p = rest; *p; p++)
        group.above += *p == '/' && p[1] && p[1] != '/';
    return tz_join(group.directory, sizeof group.directory, (const char *[]){fields[4], rest, NULL});
}

static bool find(void)
{
    if (!tz_load(&group.known) && tz_trylock(&group.lock)) {
        if (!group.known) {
            tz_lines(AT_FDCWD, "/proc/self/cgroup", find_path, NULL);
            if (group.names)
                tz_lines(AT_FDCWD, "/proc/self/mountinfo", find_mount, NULL);
            tz_store(&group.known, group.directory[0] ? 1 : -1);
        }
        tz_unlock(&group.lock);
    }
    return tz_load(&group.known) > 0;
}

/* The number in a file; UINT64_MAX for "max", and where there is no such file. */
static uint64_t read_number(int at, const char *name)
{
    int fd = (int)syscall(SYS_openat, at, name, O_RDONLY | O_CLOEXEC);
    const char *p;
    char text[32];
    long length;

    if (fd < 0)
        return UINT64_MAX;
    length = syscall(SYS_read, fd, text, sizeof text - 1);
    tz_sys_close(fd);
    if (length <= 0 || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    text[length] = '\0';
    p = text;
    return tz_read_number(&p, 10);
}

static bool add_reclaimable(char *line, char *end, void *sum)
{
    (void)end;
    for (int i = 0; i < 2; i++) {
        const char *name = group.names->reclaimable[i], *p = line + strlen(name);

        if (strncmp(line, name, strlen(name)) == 0)
            *(uint64_t *)sum += tz_read_number(&p, 10);
    }
    return false;
}

static uint64_t limit_of(int at)
{
    uint64_t limit = UINT64_MAX, one;

    for (int i = 0; i < 2 && group.names->limits[i]; i++) {
        one = read_number(at, group.names->limits[i]);
        limit = one < limit ? one : limit;
    }
    return limit >= 1ULL << 62 ? UINT64_MAX : limit; /* as version 1 says that there is none */
}

static uint64_t free_of(int at)
{
    uint64_t limit = limit_of(at), used, reclaimable = 0;

    if (limit == UINT64_MAX)
        return limit;
    used = read_number(at, group.names->usage);
    tz_lines(at, "memory.stat", add_reclaimable, &reclaimable);
    used = used < reclaimable ? 0 : used - reclaimable;
    return used < limit ? limit - used : 0;
}

/* The least that `of` says of the group and of those above it. */
static uint64_t least(uint64_t (*of)(int at))
{
    int at = find() ? tz_sys_open(group.directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0) : -1, next;
    uint64_t value = UINT64_MAX, one;

    for (int i = 0; at >= 0 && i <= group.above && i < DEEPEST; i++) {
        one = of(at);
        value = one < value ? one : value;
        next = (int)syscall(SYS_openat, at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        tz_sys_close(at);
        at = next;
    }
    if (at >= 0)
        tz_sys_close(at);
    return value;
}

uint64_t tz_cgroup_limit(void)
{
    return least(limit_of);
}

uint64_t tz_cgroup_free(void)
{
    return least(free_of);
}
