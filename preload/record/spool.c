/* This process's spool: made at the first record, longer when it must, handed over when the process ends. */
#include "record/spool.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/pages.h"
#include "base/rawsys.h"
#include "base/text.h"
#include "names/counters.h"
#include "process/state.h"
#include "record/kept.h"
#include "record/node.h"
#include "record/spool_files.h"

enum {
    HEADER = 256,
    FIRST_SIZE = 4096,
    SIZE_MAX_ = 1 << 30,
    SHORT = 65536, /* at most this is copied when a process ends */
    OFF_USED = 16,
    OFF_CAPACITY = 24,
    OFF_DROPPED = 64,
    OFF_CHANGES = 248
};

static struct {
    struct tz_lock lock;
    uint8_t *base; /* atomic */
    uint64_t capacity, used, start_ns;
    uint64_t lost; /* atomic: records that could not even be kept */
    char name[64];
} spool;

static uint8_t *map_reserved(int flags, uint64_t from, uint64_t to)
{
    int directory = tz_spool_directory(false), fd;
    void *base = NULL;
    struct tz_stat st;

    fd = tz_spool_open_in(directory, spool.name, flags | O_RDWR, &st);
    if (fd >= 0) {
        if (tz_spool_fill(fd, from, to))
            base = tz_pages_of(fd, 0, to, PROT_READ | PROT_WRITE);
        tz_sys_close(fd);
        if (!base && (flags & O_CREAT))
            tz_spool_remove(directory, spool.name);
    }
    tz_spool_directory_close(directory);
    return base;
}

/* The spool from its beginning to `to`, with new memory from `from` on; NULL when there is none. */
static uint8_t *map(int flags, uint64_t from, uint64_t to)
{
    uint8_t *base = NULL;
    bool reserved;

    if (tz_spool_refused(to - from))
        return NULL;
    tz_spool_hold();
    reserved = tz_node_reserve(to - from);
    if (reserved)
        base = map_reserved(flags, from, to);
    tz_spool_let_go();
    if (reserved && !base)
        tz_node_release(to - from);
    return base;
}

/* <pid>.<start in hex>.tzs, behind the host's name */
static bool make_name(uint64_t start_ns)
{
    char pid[24], start[24];

    tz_put_number(pid, (uint64_t)tz_config.ident.pid, 10);
    tz_put_number(start, start_ns, 16);
    return tz_join(spool.name, sizeof spool.name, (const char *[]){pid, ".", start, ".tzs", NULL});
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

    base = make_name(start_ns) ? map(O_CREAT | O_EXCL, 0, FIRST_SIZE) : NULL;
    if (!base)
        return false;
    write_header(base, start_ns);
    spool.capacity = FIRST_SIZE;
    spool.used = HEADER;
    spool.start_ns = start_ns;
    tz_store(&spool.base, base);
    return true;
}

static bool grow(uint64_t need)
{
    uint64_t capacity = spool.capacity;
    uint8_t *base;

    while (capacity < need)
        capacity *= 2;
    base = capacity <= SIZE_MAX_ ? map(0, spool.capacity, capacity) : NULL;
    if (!base)
        return false;
    tz_pages_free(spool.base, spool.capacity);
    spool.capacity = capacity;
    tz_put64(base + OFF_CAPACITY, capacity);
    tz_store(&spool.base, base);
    return true;
}

static bool room(uint64_t length)
{
    if (!spool.base && !create())
        return false;
    /* The end record always has its place. */
    length += TZ_RECORD_HEAD;
    return spool.used + length <= spool.capacity || grow(spool.used + length);
}

static void count_dropped(uint64_t records)
{
    if (spool.base)
        tz_put64(spool.base + OFF_DROPPED, tz_get64(spool.base + OFF_DROPPED) + records);
    else
        tz_node_lost(records);
}

/* Where the record of this type and key is kept: its value is 0 while there is none, else its place in the spool. */
static struct tz_counter *index_of(enum tz_record_type type, const struct tz_part texts[2])
{
    uint64_t fs = tz_hash_text(texts[0].data, texts[0].length, spool.start_ns + (uint64_t)type);

    return tz_counters_slot(tz_hash_text(texts[1].data, texts[1].length, fs) | 1);
}

/* Made or opened again: until it is closed anew its close is of no time, and so does not count. */
static void opened_again(const struct tz_part texts[2])
{
    struct tz_counter *index = index_of(TZ_CLOSE, texts);
    uint64_t at = index ? tz_load(&index->value) : 0;

    if (at)
        tz_put64(spool.base + at + 8, 0);
}

/* For readers that look again. */
static void changed(void)
{
    tz_put64(spool.base + OFF_CHANGES, tz_get64(spool.base + OFF_CHANGES) + 1);
}

static void write_locked(const struct tz_record *record)
{
    size_t length = tz_record_length(record);
    struct tz_counter *index = spool.base && record->type != TZ_END ? index_of(record->type, record->texts) : NULL;
    uint64_t at = index ? tz_load(&index->value) : 0;

    if (at && tz_record_rewrite(record, length, spool.base + at)) {
        if (record->type == TZ_CREATE)
            opened_again(record->texts);
        changed();
        return;
    }
    if (record->type != TZ_END && !room(length)) {
        count_dropped(1);
        return;
    }
    if (!index && record->type != TZ_END) /* the spool is new */
        index = index_of(record->type, record->texts);
    if (tz_relaxed(&spool.lost))
        count_dropped(__atomic_exchange_n(&spool.lost, 0, __ATOMIC_RELAXED));
    tz_record_put(record, length, spool.base + spool.used);
    if (index)
        tz_store(&index->value, spool.used);
    spool.used += length;
    tz_store((uint64_t *)(void *)(spool.base + OFF_USED), spool.used);
    changed();
}

void tz_spool_write(const struct tz_record *record)
{
    if (tz_config.recorder == TZ_RECORD_OFF || !tz_owner())
        return;
    if (tz_trylock(&spool.lock)) {
        tz_kept_each(write_locked);
        write_locked(record);
        tz_unlock(&spool.lock);
    } else if (!tz_keep(record)) {
        __atomic_add_fetch(&spool.lost, 1, __ATOMIC_RELAXED);
    }
}

bool tz_spool_made(enum tz_record_type type, const struct tz_part texts[2])
{
    struct tz_counter *index = tz_load(&spool.base) ? index_of(type, texts) : NULL;

    return index && tz_load(&index->value) != 0;
}

void tz_spool_reopened(const struct tz_part texts[2])
{
    if (!tz_spool_made(TZ_CREATE, texts))
        return;
    if (tz_trylock(&spool.lock)) {
        if (spool.base && tz_spool_made(TZ_CLOSE, texts)) {
            opened_again(texts);
            changed();
        }
        tz_unlock(&spool.lock);
    }
}

/* Behind those that ended before: one file for all short ones. False: it stays where it is. */
static bool hand_over(int directory)
{
    struct tz_stat st;
    bool done;
    int fd;

    /* The common file may be longer than this process may write. */
    if (spool.used > SHORT || tz_size_limit() != INT64_MAX)
        return false;
    fd = tz_spool_open_in(directory, "ended.tzs", O_WRONLY | O_APPEND | O_CREAT, &st);
    if (fd < 0)
        return false;
    done = syscall(SYS_write, fd, spool.base, spool.used) == (long)spool.used;
    tz_sys_close(fd);
    return done && tz_spool_remove(directory, spool.name);
}

/* At the length that it needs, if it stays by itself; how many bytes of memory it keeps. */
static uint64_t leave(void)
{
    int directory = tz_spool_directory(false), fd;
    bool handed_over = hand_over(directory);
    struct tz_stat st;

    fd = handed_over ? -1 : tz_spool_open_in(directory, spool.name, O_WRONLY, &st);
    if (fd >= 0) {
        syscall(SYS_ftruncate, fd, (off_t)spool.used);
        tz_sys_close(fd);
    }
    tz_spool_directory_close(directory);
    return handed_over ? spool.used : (spool.used + 4095) & ~4095ULL;
}

void tz_spool_end(void)
{
    struct tz_record end = {.type = TZ_END};

    if ((!tz_load(&spool.base) && !tz_any_kept()) || !tz_owner() || !tz_trylock(&spool.lock))
        return;
    tz_kept_each(write_locked);
    if (spool.base) {
        write_locked(&end);
        tz_put64(spool.base + OFF_CAPACITY, spool.used);
        tz_node_release(spool.capacity - leave());
        /* The mapping stays: a signal handler of this thread may be in the middle of a record. */
        tz_store(&spool.base, NULL);
    }
    tz_unlock(&spool.lock);
}

/*
 * The child writes a spool of its own. The parent's mapping stays where it is: another thread may have been about to
 * replace it, so that the address may by now be something else.
 */
void tz_spool_forked(void)
{
    memset(&spool, 0, sizeof spool);
    tz_kept_forked();
}
