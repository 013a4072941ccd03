/* Locks: a spin, then yields, then no more. */
#include "base/lock.h"
#include "base/clock.h"

/* Holders make a few system calls at most; only one that is stopped or starved is given up. */
enum { LOCK_NS = 200000000 };

static int process = 1; /* under which its locks are held: each copy of a process counts on */

void tz_locks_forked(void)
{
    process++;
}

static bool try_once(struct tz_lock *lock)
{
    int seen = tz_relaxed(&lock->held);

    return seen != process &&
           __atomic_compare_exchange_n(&lock->held, &seen, process, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
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
