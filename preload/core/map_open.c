/* Opening a map, or a copy of it where another node may take the file away. */
#include "core/map_open.h"
#include "base/pages.h"
#include "base/rawsys.h"

const char *tz_map_trust(int fd, int64_t trusted_uid, uint64_t length, struct tz_stat *st)
{
    if (tz_fstat(fd, st))
        return "cannot be examined";
    if (!S_ISREG(st->mode))
        return "not a regular file";
    if (st->uid != 0 && st->uid != tz_euid() && (int64_t)st->uid != trusted_uid)
        return "owned by someone who is not trusted";
    if (st->mode & 022)
        return "writable by others";
    if (st->links > 1)
        return "linked from elsewhere";
    if (st->size < length)
        return "truncated";
    return NULL;
}

static void *copy_of(int fd, uint64_t size)
{
    uint8_t *base;
    uint64_t read = 0;
    long n = 1;

    base = size > TZ_MAP_COPY_MAX ? NULL : tz_pages(size);
    if (!base)
        return NULL;
    while (read < size && (n = syscall(SYS_pread64, fd, base + read, size - read, read)) > 0)
        read += (uint64_t)n;
    if (read == size)
        return base;
    tz_pages_free(base, size);
    return NULL;
}

const char *tz_map_open(const char *path, int64_t trusted_uid, bool copy, struct tz_map *map)
{
    int fd = tz_sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    const char *wrong;
    void *base = NULL;
    struct tz_stat st;

    memset(map, 0, sizeof *map);
    if (fd < 0)
        return "cannot be opened";
    wrong = tz_map_trust(fd, trusted_uid, TZ_MAP_HEADER, &st);
    if (!wrong)
        base = copy ? copy_of(fd, st.size) : tz_pages_of(fd, 0, st.size, PROT_READ);
    tz_sys_close(fd);
    if (wrong)
        return wrong;
    if (!base)
        return "cannot be mapped";
    wrong = tz_map_check(base, st.size, map);
    if (wrong) {
        tz_pages_free(base, st.size);
        memset(map, 0, sizeof *map);
    }
    return wrong;
}

void tz_map_close(struct tz_map *map)
{
    tz_pages_free((void *)(uintptr_t)map->base, map->length);
    memset(map, 0, sizeof *map);
}
