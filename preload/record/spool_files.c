/* Spool files: their paths, and directories and memory that can be relied on. */
#include "record/spool_files.h"
#include "base/text.h"
#include "process/config.h"

bool tz_spool_path(char *out, size_t size, const char *file)
{
    return tz_join(out, size, (const char *[]){tz_config.spool, "/", tz_config.host, ".", file, NULL});
}

int tz_spool_open(const char *name, int flags, struct tz_stat *st)
{
    char path[1200];
    int fd;

    if (!tz_spool_path(path, sizeof path, name))
        return -1;
    fd = tz_sys_open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd >= 0 && (tz_fstat(fd, st) || !S_ISREG(st->mode) || st->uid != tz_euid())) {
        tz_sys_close(fd);
        fd = -1;
    }
    return fd;
}

bool tz_spool_fill(int fd, uint64_t from, uint64_t to)
{
    static const char zeros[4096];
    struct tz_stat st = {.size = to};

    if (tz_size_limit() < to)
        return false;
    if (syscall(SYS_fallocate, fd, 0, (off_t)from, (off_t)(to - from)) == 0)
        return true;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return false;
    if (tz_fstat(fd, &st) || st.size > from) /* what is there may hold something */
        from = st.size;
    for (; from < to; from += sizeof zeros)
        if (syscall(SYS_pwrite64, fd, zeros, sizeof zeros, (off_t)from) != (long)sizeof zeros)
            return false;
    return true;
}

static void make_directories(const char *path)
{
    char part[sizeof tz_config.spool];
    size_t length = strlen(path);

    memcpy(part, path, length + 1);
    if (syscall(SYS_mkdirat, AT_FDCWD, part, 0700) == 0 || errno == EEXIST)
        return;
    for (size_t i = 1; i <= length; i++)
        if (part[i] == '/' || part[i] == '\0') {
            char kept = part[i];

            part[i] = '\0';
            syscall(SYS_mkdirat, AT_FDCWD, part, 0700);
            part[i] = kept;
        }
}

/* In a directory that others can write to, or that is theirs, spools could be planted or taken away. */
static bool belongs_to_us(const char *path, bool parent)
{
    struct stat found;

    if (syscall(SYS_newfstatat, AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(found.st_mode))
        return false;
    if (parent && (found.st_mode & S_ISVTX))
        return true;
    return (found.st_uid == (uid_t)syscall(SYS_geteuid) || (parent && found.st_uid == 0)) && !(found.st_mode & 022);
}

bool tz_spool_directory(void)
{
    char parent[sizeof tz_config.spool];
    char *last;

    make_directories(tz_config.spool);
    memcpy(parent, tz_config.spool, sizeof parent);
    for (last = parent + strlen(parent); last > parent + 1 && last[-1] == '/'; last--)
        last[-1] = '\0';
    last = strrchr(parent, '/');
    if (!last || !belongs_to_us(tz_config.spool, false))
        return false;
    last[last == parent] = '\0';
    return belongs_to_us(parent, true);
}
