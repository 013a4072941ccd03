/* Spool files: the directory that they lie in, their names, and memory that can be relied on. */
#include "record/spool_files.h"
#include "base/text.h"
#include "process/config.h"
#include "process/trusted.h"

enum { UNKNOWN, GIVEN, BESIDE };
enum { TRIES = 100 };
enum { NAME = TZ_HOST_MAX + 1 + 64 };

/* Which of the two this process uses: once it has begun it stays with one. Atomic. */
static int chosen;

int tz_spool_directory(bool make)
{
    int which = tz_load(&chosen), fd = -1;

    if (which != BESIDE) {
        fd = tz_trusted_directory(tz_config.spool, make);
        if (fd >= 0 || which == GIVEN || errno != EPERM) {
            if (fd >= 0)
                tz_store(&chosen, GIVEN);
            return fd;
        }
    }
    fd = tz_trusted_directory(tz_config.spool_beside, make);
    if (fd >= 0)
        tz_store(&chosen, BESIDE);
    return fd;
}

static bool file_name(char *out, const char *name)
{
    return tz_join(out, NAME, (const char *[]){tz_config.host, ".", name, NULL});
}

int tz_spool_open_in(int directory, const char *name, int flags, struct tz_stat *st)
{
    char file[NAME];
    int fd;

    if (directory < 0 || !file_name(file, name))
        return -1;
    fd = (int)syscall(SYS_openat, directory, file, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd >= 0 && (tz_fstat(fd, st) || !S_ISREG(st->mode) || st->uid != tz_euid() || st->links != 1)) {
        tz_sys_close(fd);
        fd = -1;
    }
    return fd;
}

int tz_spool_open(const char *name, int flags, struct tz_stat *st)
{
    int directory = tz_spool_directory(flags & O_CREAT), fd = tz_spool_open_in(directory, name, flags, st);

    if (directory >= 0)
        tz_sys_close(directory);
    return fd;
}

bool tz_spool_remove(int directory, const char *name)
{
    char file[NAME];

    return file_name(file, name) && syscall(SYS_unlinkat, directory, file, 0) == 0;
}

bool tz_spool_fill(int fd, uint64_t from, uint64_t to)
{
    static const char zeros[4096];
    struct tz_stat st = {.size = to};

    if (tz_size_limit() < to)
        return false;
    for (int i = 0; i < TRIES; i++) {
        if (syscall(SYS_fallocate, fd, 0, (off_t)from, (off_t)(to - from)) == 0)
            return true;
        if (errno != EINTR) /* in memory any signal that is waiting ends it */
            break;
    }
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return false;
    if (tz_fstat(fd, &st) || st.size > from) /* what is there may hold something */
        from = st.size;
    for (; from < to; from += sizeof zeros)
        if (syscall(SYS_pwrite64, fd, zeros, sizeof zeros, (off_t)from) != (long)sizeof zeros)
            return false;
    return true;
}
