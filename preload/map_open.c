/* Opening a map: who may have written it, and the mapping itself. */
#include "map.h"
#include "rawsys.h"

#include <sys/mman.h>

const char *tz_map_trust(int fd, int64_t trusted_uid, uint64_t length, uint64_t *size)
{
    struct tz_stat st;

    if (tz_fstat(fd, &st))
        return "cannot be examined";
    if (!S_ISREG(st.mode))
        return "not a regular file";
    if (st.uid != 0 && st.uid != tz_euid() && (int64_t)st.uid != trusted_uid)
        return "owned by someone who is not trusted";
    if (st.mode & 022)
        return "writable by others";
    if (st.size < length)
        return "truncated";
    *size = st.size;
    return NULL;
}

const char *tz_map_open(const char *path, int64_t trusted_uid, struct tz_map *map)
{
    int fd = tz_sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    const char *wrong;
    uint64_t size;
    void *base;

    memset(map, 0, sizeof *map);
    if (fd < 0)
        return "cannot be opened";
    wrong = tz_map_trust(fd, trusted_uid, TZ_MAP_HEADER, &size);
    base = wrong ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    tz_sys_close(fd);
    if (wrong)
        return wrong;
    if (base == MAP_FAILED)
        return "cannot be mapped";
    wrong = tz_map_check(base, size, map);
    if (wrong) {
        munmap(base, size);
        memset(map, 0, sizeof *map);
    }
    return wrong;
}

void tz_map_close(struct tz_map *map)
{
    if (map->base)
        munmap((void *)(uintptr_t)map->base, map->length);
    memset(map, 0, sizeof *map);
}
