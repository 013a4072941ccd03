#include "spool.h"
#include "rawsys.h"

#include <sys/mman.h>

enum {
    HEADER = 256,
    RECORD_HEAD = 16,
    FIRST_SIZE = 65536,
    SIZE_MAX_ = 1 << 30,
    OFF_USED = 16,
    OFF_CAPACITY = 24,
    OFF_DROPPED = 64
};

static struct {
    struct tz_lock lock;
    uint8_t *base; /* atomic */
    uint64_t capacity, used;
    bool failed;
    uint64_t lost; /* atomic: records that could not even take the lock */
    char path[1200];
} spool;

static bool fill(int fd, uint64_t from, uint64_t to)
{
    static const char zeros[4096];

    /* A hole would be SIGBUS when the memory file system is full. */
    if (syscall(SYS_fallocate, fd, 0, (off_t)from, (off_t)(to - from)) == 0)
        return true;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return false;
    for (; from < to; from += sizeof zeros)
        if (syscall(SYS_pwrite64, fd, zeros, sizeof zeros, (off_t)from) != (long)sizeof zeros)
            return false;
    return true;
}

static uint8_t *map_at(const char *path, int flags, uint64_t from, uint64_t to)
{
    int fd = tz_sys_open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    void *base = MAP_FAILED;

    if (fd < 0)
        return NULL;
    if (fill(fd, from, to))
        base = mmap(NULL, to, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    tz_sys_close(fd);
    return base == MAP_FAILED ? NULL : base;
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

static bool directory_is_safe(void)
{
    char parent[sizeof tz_config.spool];
    char *last;

    memcpy(parent, tz_config.spool, sizeof parent);
    for (last = parent + strlen(parent); last > parent + 1 && last[-1] == '/'; last--)
        last[-1] = '\0';
    last = strrchr(parent, '/');
    if (!last || !belongs_to_us(tz_config.spool, false))
        return false;
    last[last == parent] = '\0';
    return belongs_to_us(parent, true);
}

static size_t put_number(char *out, uint64_t v, unsigned base)
{
    char digits[24];
    size_t n = 0, length = 0;

    do
        digits[n++] = "0123456789abcdef"[v % base];
    while (v /= base);
    while (n)
        out[length++] = digits[--n];
    return length;
}

/* <directory>/<host>.<pid>.<start in hex>.tzs */
static bool make_path(uint64_t start_ns)
{
    char *p = spool.path;
    size_t directory = strlen(tz_config.spool), host = strlen(tz_config.host);

    if (directory + host + 64 > sizeof spool.path)
        return false;
    memcpy(p, tz_config.spool, directory);
    p += directory;
    *p++ = '/';
    memcpy(p, tz_config.host, host);
    p += host;
    *p++ = '.';
    p += put_number(p, (uint64_t)tz_config.ident.pid, 10);
    *p++ = '.';
    p += put_number(p, start_ns, 16);
    memcpy(p, ".tzs", 5);
    return true;
}

static void write_header(uint8_t *h, uint64_t start_ns)
{
    memcpy(h, "TZSPOOL1", 8);
    tz_put32(h + 8, 1);
    tz_put32(h + 12, HEADER);
    tz_put64(h + OFF_CAPACITY, FIRST_SIZE);
    tz_put64(h + 32, start_ns);
    tz_put32(h + 40, (uint32_t)tz_config.ident.pid);
    tz_put32(h + 44, (uint32_t)syscall(SYS_getppid));
    tz_put32(h + 48, (uint32_t)tz_config.ident.rank);
    tz_put32(h + 52, (uint32_t)tz_config.ranks);
    tz_put32(h + 56, (uint32_t)syscall(SYS_getuid));
    tz_put32(h + 60, tz_config.recorder);
    tz_put32(h + 72, tz_config.mode);
    memcpy(h + 80, tz_config.host, sizeof tz_config.host);
    memcpy(h + 144, tz_config.program, sizeof tz_config.program);
    memcpy(h + 208, tz_config.job, 39);
    tz_store((uint64_t *)(void *)(h + OFF_USED), HEADER);
}

static bool create(void)
{
    uint64_t start_ns = tz_now_ns();
    uint8_t *base;

    if (!make_path(start_ns))
        return false;
    make_directories(tz_config.spool);
    if (!directory_is_safe())
        return false;
    base = map_at(spool.path, O_CREAT | O_EXCL, 0, FIRST_SIZE);
    if (!base)
        return false;
    write_header(base, start_ns);
    spool.capacity = FIRST_SIZE;
    spool.used = HEADER;
    tz_store(&spool.base, base);
    return true;
}

static bool grow(uint64_t need)
{
    uint64_t capacity = spool.capacity;
    uint8_t *base;

    while (capacity < need)
        capacity *= 2;
    if (capacity > SIZE_MAX_)
        return false;
    base = map_at(spool.path, 0, spool.capacity, capacity);
    if (!base)
        return false;
    munmap(spool.base, spool.capacity);
    spool.capacity = capacity;
    tz_put64(base + OFF_CAPACITY, capacity);
    tz_store(&spool.base, base);
    return true;
}

static bool room(uint64_t length)
{
    if (spool.failed)
        return false;
    if (!spool.base && !create())
        return !(spool.failed = true);
    return spool.used + length <= spool.capacity || grow(spool.used + length);
}

static void count_dropped(uint64_t records)
{
    tz_put64(spool.base + OFF_DROPPED, tz_get64(spool.base + OFF_DROPPED) + records);
}

void tz_spool_append(enum tz_record_type type, uint16_t flags, const void *fixed, size_t fixed_length,
                     const struct tz_part *texts, int text_count)
{
    size_t length = RECORD_HEAD + fixed_length;
    uint8_t *p;

    for (int i = 0; i < text_count; i++)
        length += texts[i].length;
    length = (length + 7) & ~(size_t)7;
    if (tz_config.recorder == TZ_RECORD_OFF || !tz_owner())
        return;
    if (!tz_trylock(&spool.lock)) {
        __atomic_add_fetch(&spool.lost, 1, __ATOMIC_RELAXED);
        return;
    }
    if (!room(length)) {
        if (spool.base)
            count_dropped(1);
        tz_unlock(&spool.lock);
        return;
    }
    if (tz_relaxed(&spool.lost))
        count_dropped(__atomic_exchange_n(&spool.lost, 0, __ATOMIC_RELAXED));
    p = spool.base + spool.used;
    tz_put16(p, type);
    tz_put16(p + 2, flags);
    tz_put32(p + 4, (uint32_t)length);
    tz_put64(p + 8, tz_now_ns());
    p += RECORD_HEAD;
    if (fixed_length)
        memcpy(p, fixed, fixed_length);
    p += fixed_length;
    for (int i = 0; i < text_count; i++) {
        memcpy(p, texts[i].data, texts[i].length);
        p += texts[i].length;
    }
    spool.used += length;
    tz_store((uint64_t *)(void *)(spool.base + OFF_USED), spool.used);
    tz_unlock(&spool.lock);
}

bool tz_spool_exists(void)
{
    return tz_load(&spool.base) != NULL;
}

/*
 * The child writes a spool of its own. The parent's mapping stays where it is: another thread may have been about to
 * replace it, so that the address may by now be something else.
 */
void tz_spool_forked(void)
{
    memset(&spool, 0, sizeof spool);
}
