/* Spool files: the directory that they lie in, their names, and memory that can be relied on. */
#include "record/spool_files.h"
#include "base/clock.h"
#include "base/text.h"
#include "process/config.h"
#include "process/trusted.h"

enum { UNKNOWN, GIVEN, BESIDE };
enum { TRIES = 100, REFUSED_NS = 1000000000 };
enum { NAME = TZ_HOST_MAX + 1 + 64 };

/* Which of the two this process uses: once it has begun it stays with one. Atomic. */
static int chosen;

static uint32_t owner; /* atomic: of the directory that was opened last, which is this user */

static TZ_THREAD int held = -1; /* what this thread keeps open for several steps */

static int open_one(const char *path, bool make, struct tz_identity *known, int which)
{
    int fd = tz_trusted_directory(path, make, known);

    if (fd >= 0) {
        tz_store(&owner, tz_relaxed(&known->uid));
        tz_store(&chosen, which);
    }
    return fd;
}

int tz_spool_directory(bool make)
{
    static struct tz_identity beside;
    int which = tz_load(&chosen), fd;

    if (held >= 0)
        return held;
    if (which != BESIDE) {
        fd = open_one(tz_config.spool, make, &tz_config.here.spool, GIVEN);
        if (fd >= 0 || which == GIVEN || errno != EPERM)
            return fd;
    }
    return open_one(tz_config.spool_beside, make, &beside, BESIDE);
}

void tz_spool_directory_close(int directory)
{
    if (directory >= 0 && directory != held)
        tz_sys_close(directory);
}

void tz_spool_hold(void)
{
    held = tz_spool_directory(false);
}

void tz_spool_let_go(void)
{
    int directory = held;

    held = -1;
    tz_spool_directory_close(directory);
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
    if (fd < 0 || flags & O_EXCL) /* a new file is what it should be */
        return fd;
    if (tz_fstat(fd, st) || !S_ISREG(st->mode) || st->uid != tz_load(&owner) || st->links != 1) {
        tz_sys_close(fd);
        fd = -1;
    }
    return fd;
}

int tz_spool_open(const char *name, int flags, struct tz_stat *st)
{
    int directory = tz_spool_directory(flags & O_CREAT), fd = tz_spool_open_in(directory, name, flags, st);

    tz_spool_directory_close(directory);
    return fd;
}

bool tz_spool_remove(int directory, const char *name)
{
    char file[NAME];

    return file_name(file, name) && syscall(SYS_unlinkat, directory, file, 0) == 0;
}

static struct {
    uint64_t bytes, until_ns; /* atomic */
} refused;

void tz_spool_refuse(uint64_t bytes)
{
    tz_store(&refused.bytes, bytes);
    tz_store(&refused.until_ns, tz_about_steady_ns() + REFUSED_NS);
}

bool tz_spool_refused(uint64_t bytes)
{
    uint64_t until_ns = tz_load(&refused.until_ns);

    return until_ns && bytes >= tz_load(&refused.bytes) && tz_about_steady_ns() < until_ns;
}

static bool fill(int fd, uint64_t from, uint64_t to)
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

bool tz_spool_fill(int fd, uint64_t from, uint64_t to)
{
    bool filled = fill(fd, from, to);

    if (!filled)
        tz_spool_refuse(to - from);
    return filled;
}
