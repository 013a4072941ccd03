/* Locks: a spin, then naps, so that the holder gets the processor, then no more. */
#include "base/lock.h"
#include "base/clock.h"

/* Holders make a few system calls at most; only one that is stopped or starved is given up. */
enum { LOCK_NS = 200000000, HANGS_NS = 2000000000, SPINS = 200, NAP_NS = 20000, LONGEST_NAP_NS = 2000000 };

static int process = 1; /* under which its locks are held: each copy of a process counts on */

void tz_locks_forked(void)
{
    process++;
}

static bool try_once(struct tz_lock *lock)
{
    int seen = tz_relaxed(&lock->held);

    if (seen == process ||
        !__atomic_compare_exchange_n(&lock->held, &seen, process, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    if (tz_unlikely(tz_relaxed(&lock->in_vain_since)))
        tz_store(&lock->in_vain_since, 0);
    return true;
}

bool tz_trylock(struct tz_lock *lock)
{
    struct timespec nap = {0, NAP_NS};
    uint64_t begin, since, none = 0;

    for (int i = 0; i < SPINS; i++)
        if (try_once(lock))
            return true;
    begin = tz_clock_ns(CLOCK_MONOTONIC);
    since = tz_load(&lock->in_vain_since);
    if (since && begin - since > HANGS_NS)
        return false;
    do {
        syscall(SYS_nanosleep, &nap, NULL);
        if (try_once(lock))
            return true;
        nap.tv_nsec = nap.tv_nsec < LONGEST_NAP_NS ? 2 * nap.tv_nsec : nap.tv_nsec;
    } while (tz_clock_ns(CLOCK_MONOTONIC) < begin + LOCK_NS);
    __atomic_compare_exchange_n(&lock->in_vain_since, &none, begin, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return false;
}

bool tz_trylock_slow(struct tz_lock *lock, bool needed)
{
    return try_once(lock) || (needed && tz_trylock(lock));
}

void tz_unlock(struct tz_lock *lock)
{
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}
