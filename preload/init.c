#include "state.h"
#include "files.h"
#include "rawsys.h"
#include "record.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

int tz_state;
int tz_counting;
__thread int tz_depth __attribute__((tls_model("initial-exec")));
__thread int tz_mine __attribute__((tls_model("initial-exec")));
__thread int tz_uncertain __attribute__((tls_model("initial-exec")));
int tz_memory_shared;

/* Holders make a few system calls at most; only one that is stopped or starved is given up. */
enum { LOCK_NS = 200000000 };

static int owner_pid;
static int *copy_mark; /* on a page that a forked copy sees as zeros; NULL where the kernel has no such page */

static void forked(void)
{
    owner_pid = tz_getpid();
    tz_config.ident.pid = owner_pid;
    tz_mine = 0;
    if (copy_mark)
        tz_store(copy_mark, 1);
    tz_scratch_forked();
    tz_paths_forked();
    tz_counters_forked();
    tz_map_forked();
    tz_files_forked();
    tz_spool_forked();
    tz_node_forked();
    tz_record_forked();
}

static void fork_child(void)
{
    if (tz_load(&tz_state) == TZ_ON)
        forked();
    /* Another thread may have been starting the library when the process was copied. */
    if (tz_load(&tz_state) == TZ_STARTING)
        tz_store(&tz_state, TZ_OFF);
}

static void make_mark(void)
{
    int *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return;
#ifdef MADV_WIPEONFORK
    if (madvise(page, 4096, MADV_WIPEONFORK) == 0) {
        *page = 1;
        copy_mark = page;
        return;
    }
#endif
    munmap(page, 4096);
}

bool tz_start(void)
{
    int expected = TZ_UNKNOWN, saved = errno;
    bool on;

    if (!__atomic_compare_exchange_n(&tz_state, &expected, TZ_STARTING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return expected == TZ_ON;
    tz_depth = 1;
    on = tz_config_read();
    if (on) {
        owner_pid = tz_config.ident.pid;
        make_mark();
        pthread_atfork(NULL, NULL, fork_child);
        tz_counting = tz_config.recorder == TZ_RECORD_FULL;
    }
    tz_store(&tz_state, on ? TZ_ON : TZ_OFF);
    if (on && tz_config.recorder != TZ_RECORD_OFF)
        tz_record_adopt();
    tz_depth = 0;
    errno = saved;
    return on;
}

/* A copy made by a raw clone: no atfork handler ran. */
static void check_copy(void)
{
    if (copy_mark && tz_load(copy_mark) == 0)
        forked();
}

bool tz_owner(void)
{
    if (tz_mine == 0) {
        check_copy();
        tz_mine = tz_getpid() == owner_pid ? 1 : -1;
        if (tz_mine > 0) /* a child of vfork has gone its way */
            tz_uncertain = 0;
    }
    return tz_mine > 0;
}

bool tz_owner_quick(void)
{
    if (tz_mine || tz_uncertain || !copy_mark || tz_load(&tz_memory_shared))
        return tz_owner();
    check_copy();
    return true;
}

static bool try_once(struct tz_lock *lock)
{
    return !tz_relaxed(&lock->held) && !__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE);
}

bool tz_trylock(struct tz_lock *lock)
{
    uint64_t deadline = 0;

    for (int i = 0;; i++) {
        if (try_once(lock))
            return true;
        if (i < 200)
            continue;
        if (deadline == 0)
            deadline = tz_now_ns() + LOCK_NS;
        else if (tz_now_ns() > deadline)
            return false;
        syscall(SYS_sched_yield);
    }
}

bool tz_trylock_slow(struct tz_lock *lock, bool needed)
{
    bool wait = needed && !tz_load(&lock->hangs), locked = try_once(lock) || (wait && tz_trylock(lock));

    if (locked || wait)
        tz_store(&lock->hangs, !locked);
    return locked;
}

void tz_unlock(struct tz_lock *lock)
{
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

void *tz_pages(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

void tz_pages_free(void *pages, size_t size)
{
    if (pages)
        munmap(pages, size);
}

uint64_t tz_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* To a few milliseconds, at a fraction of the price. */
uint64_t tz_about_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return (uint64_t)t.tv_sec;
}

enum { SCRATCH_SLOTS = 64 };

static uint32_t beyond_slots; /* atomic: operations whose scratch has no slot, and so is not seen by others */

static struct {
    int used;                   /* atomic */
    struct tz_scratch *scratch; /* atomic, kept once made */
} slots[SCRATCH_SLOTS];

/* Where this thread found one before: warm memory, and no fight for the first slot. */
static __thread int my_slot __attribute__((tls_model("initial-exec")));

struct tz_scratch *tz_scratch_get(void)
{
    struct tz_scratch *found;

    for (int n = 0, i = my_slot; n < SCRATCH_SLOTS; n++, i = (i + 1) % SCRATCH_SLOTS) {
        if (tz_relaxed(&slots[i].used) || __atomic_exchange_n(&slots[i].used, 1, __ATOMIC_ACQUIRE))
            continue;
        found = tz_relaxed(&slots[i].scratch);
        if (!found)
            __atomic_store_n(&slots[i].scratch, found = tz_pages(sizeof *found), __ATOMIC_SEQ_CST);
        if (found) {
            found->slot = my_slot = i;
            return found;
        }
        tz_store(&slots[i].used, 0);
        return NULL;
    }
    found = tz_pages(sizeof *found);
    if (found) {
        found->slot = -1;
        __atomic_add_fetch(&beyond_slots, 1, __ATOMIC_SEQ_CST);
    }
    return found;
}

void tz_scratch_put(struct tz_scratch *scratch)
{
    if (!scratch)
        return;
    tz_store(&scratch->map, NULL);
    if (scratch->slot >= 0) {
        tz_store(&slots[scratch->slot].used, 0);
        return;
    }
    tz_pages_free(scratch, sizeof *scratch);
    __atomic_sub_fetch(&beyond_slots, 1, __ATOMIC_SEQ_CST);
}

bool tz_scratch_holds(const struct tz_map *map)
{
    if (__atomic_load_n(&beyond_slots, __ATOMIC_SEQ_CST))
        return true;
    for (int i = 0; i < SCRATCH_SLOTS; i++) {
        const struct tz_scratch *scratch = __atomic_load_n(&slots[i].scratch, __ATOMIC_SEQ_CST);

        if (scratch && __atomic_load_n(&scratch->map, __ATOMIC_SEQ_CST) == map)
            return true;
    }
    return false;
}

/* Slots of threads that do not exist in the child. */
void tz_scratch_forked(void)
{
    struct tz_scratch *scratch;

    beyond_slots = 0;
    for (int i = 0; i < SCRATCH_SLOTS; i++) {
        tz_store(&slots[i].used, 0);
        scratch = tz_load(&slots[i].scratch);
        if (scratch)
            tz_store(&scratch->map, NULL);
    }
}

int __cxa_atexit(void (*function)(void *), void *argument, void *object);

static void at_exit(void *unused)
{
    (void)unused;
    tz_record_exit(true);
}

/*
 * What is registered before libc registers the loader's own handler runs after it: after the destructors of all
 * libraries, some of which (libgfortran) still write and close files.
 */
__attribute__((constructor)) static void constructor(void)
{
    if (tz_relaxed(&tz_state) == TZ_UNKNOWN)
        tz_start();
    if (tz_relaxed(&tz_state) == TZ_ON)
        __cxa_atexit(at_exit, NULL, NULL);
}
