/*
 * The node file. It begins as zeros, which mean the same as an empty table: no process has to make it before others use
 * it. A process may be killed anywhere: an entry is reached only once it is whole.
 */
#include "record/node.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/rawsys.h"
#include "process/cgroup.h"
#include "process/state.h"
#include "record/node_pages.h"
#include "record/spool_files.h"

#include <sys/sysinfo.h>

enum { HEADER = 4096, STEP = 4096, HEADS = 960, HEADS_AT = 256, ENTRY_HEAD = 16 };
enum { TIME_AT = 8, SHARE = 100 };
enum { ALWAYS = 65536 }; /* bytes that the spools of a node may take before anybody asks how many there are */
enum { RETRY_NS = 1000000000 };

#define MAGIC 0x313045444f4e5a54ULL /* TZNODE01 */

struct header {
    uint64_t magic; /* atomic */
    uint32_t version, length;
    uint64_t used;     /* atomic: header and entries, 0 while there are none */
    uint64_t capacity; /* atomic: the memory behind the file up to here is reserved */
    uint64_t reserved; /* atomic: bytes of all spools of this node */
    uint64_t lost;     /* atomic: records that found no room */
    uint64_t limit;    /* atomic: bytes that spools may take, 0 while they take few and nobody has asked */
    uint32_t recorder, mode, uid, ranks;
    char host[TZ_HOST_MAX];
    char job[TZ_JOB_MAX];
    uint64_t changes;     /* atomic: for readers that look again */
    uint64_t passed_over; /* atomic: opens that could have made a file while all was stopped */
};

_Static_assert(sizeof(struct header) <= HEADS_AT, "the heads follow");

struct entry {
    uint64_t hash;
    uint32_t next; /* atomic: place of the next entry of this head / 8 */
    int32_t rank;
    uint8_t record[];
};

static struct {
    struct tz_lock lock;
    struct header *base;  /* atomic */
    uint64_t retry_ns;    /* atomic: not to be had; tried again then */
    uint64_t lost;        /* atomic: what could not even be counted there */
    uint64_t passed_over; /* atomic: not counted there yet */
} node;

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* TARAZU_SPOOL_KIB, else the least of 256 MiB and 1 % of this node's memory. */
static uint64_t limit_here(void)
{
    struct sysinfo info;

    if (tz_config.spool_limit)
        return tz_config.spool_limit;
    if (sysinfo(&info))
        return 64 << 20;
    return least((uint64_t)info.totalram * info.mem_unit / SHARE, 256 << 20);
}

/* The same in a job whose memory is limited: spools count as the job's own. */
static uint64_t limit_of_job(void)
{
    return least(limit_here(), tz_cgroup_limit() / SHARE);
}

static bool raise(uint64_t *to, uint64_t value)
{
    uint64_t seen = tz_load(to);

    while (seen < value)
        if (__atomic_compare_exchange_n(to, &seen, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return true;
    return false;
}

/* Nothing that a damaged file says may lead beyond its end; others may have made it longer since `size`. */
static bool is_sound(const struct header *h, int fd, uint64_t size)
{
    uint64_t used = tz_load(&h->used), capacity = tz_load(&h->capacity);
    struct tz_stat st;

    return h->version == 1 && h->length == HEADER && used >= HEADER && used <= capacity &&
           capacity <= TZ_NODE_LONGEST && (capacity <= size || (tz_fstat(fd, &st) == 0 && capacity <= st.size));
}

static struct header *open_node(void)
{
    struct header *h = NULL;
    struct tz_stat st;
    int fd = tz_spool_open(TZ_NODE_NAME, O_RDWR | O_CREAT, &st);

    if (fd < 0)
        return NULL;
    if (st.size >= HEADER + STEP || tz_spool_fill(fd, 0, HEADER + STEP))
        h = tz_node_begin(fd);
    if (h && tz_load(&h->magic) == MAGIC && !is_sound(h, fd, st.size)) {
        tz_node_not();
        h = NULL;
    }
    tz_sys_close(fd);
    if (!h)
        return NULL;
    if (tz_load(&h->magic) != MAGIC) { /* all that come here write the same */
        h->version = 1;
        h->length = HEADER;
        h->recorder = tz_config.recorder;
        h->mode = tz_config.mode;
        h->uid = (uint32_t)syscall(SYS_getuid);
        h->ranks = (uint32_t)tz_config.ranks;
        memcpy(h->host, tz_config.host, sizeof h->host);
        memcpy(h->job, tz_config.job, sizeof h->job);
        raise(&h->capacity, HEADER + STEP);
        raise(&h->used, HEADER);
        raise(&h->reserved, HEADER + STEP);
        tz_store(&h->magic, MAGIC);
    }
    return h;
}

static struct header *header(void)
{
    struct header *h = tz_load(&node.base);
    uint64_t now;

    if (h)
        return h;
    now = tz_now_ns();
    if (now < tz_load(&node.retry_ns) || !tz_owner() || !tz_trylock(&node.lock))
        return NULL;
    h = tz_load(&node.base);
    if (!h && (h = open_node()) != NULL) {
        __atomic_add_fetch(&h->lost, __atomic_exchange_n(&node.lost, 0, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
        __atomic_add_fetch(&h->passed_over, __atomic_exchange_n(&node.passed_over, 0, __ATOMIC_RELAXED),
                           __ATOMIC_RELAXED);
        tz_store(&node.base, h);
    }
    if (!h)
        tz_store(&node.retry_ns, now + RETRY_NS);
    tz_unlock(&node.lock);
    return h;
}

/* What the spools may take: found out by the first process that would go beyond what is always allowed. */
static uint64_t limit_in(struct header *h)
{
    uint64_t given = tz_config.spool_limit;

    if (tz_load(&h->reserved) <= ALWAYS)
        return given ? least(given, ALWAYS) : ALWAYS;
    if (!tz_load(&h->limit))
        tz_store(&h->limit, limit_of_job());
    return least(tz_load(&h->limit), limit_here());
}

bool tz_node_reserve(uint64_t bytes)
{
    struct header *h = header();

    if (!h)
        return false;
    if (bytes <= STEP || bytes <= tz_cgroup_free() / SHARE) {
        if (__atomic_add_fetch(&h->reserved, bytes, __ATOMIC_ACQ_REL) <= limit_in(h))
            return true;
        tz_node_release(bytes);
    }
    tz_spool_refuse(bytes);
    return false;
}

void tz_node_release(uint64_t bytes)
{
    struct header *h = header();

    if (h)
        __atomic_sub_fetch(&h->reserved, bytes, __ATOMIC_ACQ_REL);
}

void tz_node_lost(uint64_t records)
{
    struct header *h = header();

    __atomic_add_fetch(h ? &h->lost : &node.lost, records, __ATOMIC_RELAXED);
}

void tz_node_passed_over(void)
{
    struct header *h = tz_load(&node.base);

    if (tz_owner())
        __atomic_add_fetch(h ? &h->passed_over : &node.passed_over, 1, __ATOMIC_RELAXED);
}

static uint32_t *head_of(struct header *h, uint64_t hash)
{
    return (uint32_t *)(void *)((uint8_t *)h + HEADS_AT) + hash % HEADS;
}

/* Entries of one head from the newest on. What a damaged file says of places is not believed. */
static struct entry *find(struct header *h, uint32_t at, uint64_t hash)
{
    const size_t need = sizeof(struct entry) + TZ_RECORD_HEAD + sizeof(struct tz_create_values);
    uint64_t capacity = tz_load(&h->capacity);

    for (int i = 0; at && i < 100000; i++) {
        uint64_t place = 8 * (uint64_t)at;
        struct entry *entry = place >= HEADER && place + need <= capacity ? tz_node_at(place, need) : NULL;

        if (!entry)
            return NULL;
        if (entry->hash == hash)
            return entry;
        at = __atomic_load_n(&entry->next, __ATOMIC_ACQUIRE);
    }
    return NULL;
}

/* Memory behind the file up to `end`. */
static bool extend(struct header *h, uint64_t end)
{
    uint64_t from = tz_load(&h->capacity), to = (end + STEP - 1) & ~(uint64_t)(STEP - 1);
    struct tz_stat st;
    bool done;
    int fd;

    if (end <= from)
        return true;
    if (to > TZ_NODE_LONGEST || tz_spool_refused(to - from) || !tz_node_reserve(to - from))
        return false;
    fd = tz_spool_open(TZ_NODE_NAME, O_RDWR, &st);
    done = fd >= 0 && tz_spool_fill(fd, from, to);
    if (fd >= 0)
        tz_sys_close(fd);
    if (!done || !raise(&h->capacity, to)) /* or another process was faster */
        tz_node_release(to - from);
    return done;
}

/* Room for an entry, mapped; 0 when there is none. */
static uint64_t take(struct header *h, size_t length, struct entry **entry)
{
    uint64_t used = tz_load(&h->used), at;

    do {
        if (used < HEADER || used > TZ_NODE_LONGEST)
            return 0;
        at = tz_node_whole(used, length);
        if (!extend(h, at + length) || !(*entry = tz_node_at(at, length)))
            return 0;
    } while (!__atomic_compare_exchange_n(&h->used, &used, at + length, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return at;
}

/* A new entry before those of its head, unless another process adds the same meanwhile. */
static bool add(struct header *h, uint64_t hash, const struct tz_record *record)
{
    size_t length = tz_record_length(record);
    uint32_t *head = head_of(h, hash), first = __atomic_load_n(head, __ATOMIC_ACQUIRE);
    struct entry *entry;
    uint64_t at = take(h, ENTRY_HEAD + length, &entry);

    if (!at)
        return false;
    entry->hash = hash;
    entry->rank = tz_config.ident.rank;
    tz_record_put(record, length, entry->record);
    do {
        if (find(h, first, hash))
            return true;
        __atomic_store_n(&entry->next, first, __ATOMIC_RELEASE);
    } while (!__atomic_compare_exchange_n(head, &first, (uint32_t)(at / 8), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return true;
}

bool tz_node_note(const struct tz_record *record)
{
    struct header *h = tz_owner() ? header() : NULL;
    const struct tz_part *texts = record->texts;
    struct entry *found;
    uint64_t hash;

    if (!h)
        return false;
    hash = tz_hash_text(texts[0].data, texts[0].length,
                        (uint64_t)(uint32_t)tz_config.ident.rank << 32 | (uint64_t)(record->flags & 1) << 8 |
                            (uint64_t)record->type);
    hash = tz_hash_text(texts[1].data, texts[1].length, hash);
    found = find(h, __atomic_load_n(head_of(h, hash), __ATOMIC_ACQUIRE), hash);
    if (!found)
        return add(h, hash, record);
    if (record->type == TZ_CLOSE)
        tz_store((uint64_t *)(void *)(found->record + TZ_RECORD_HEAD),
                 ((const struct tz_close_values *)record->values)->size);
    else if (record->type == TZ_CREATE && (record->flags & 1))
        return true; /* that it was there already says nothing new */
    else if (record->type == TZ_CREATE)
        memcpy(found->record + TZ_RECORD_HEAD, record->values, record->values_length);
    tz_store((uint64_t *)(void *)(found->record + TIME_AT), tz_now_ns());
    __atomic_add_fetch(&h->changes, 1, __ATOMIC_RELAXED);
    return true;
}

/* The mapping is shared with the parent, and good in the child too. */
void tz_node_forked(void)
{
    node.retry_ns = node.lost = node.passed_over = 0;
}
