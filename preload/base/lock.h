/* Locks that never wait long. Never taken outside a hook. */
#pragma once

#include "tz.h"

struct tz_lock {
    int held;               /* atomic: free unless it is this process's number */
    uint64_t in_vain_since; /* atomic: since when nobody who waited has had it; 0: the last one has */
};

/*
 * Given up after a bounded time; false when it could not be had. Nobody waits any more for one that nobody has had for
 * two seconds: its holder is not starved but hangs.
 */
bool tz_trylock(struct tz_lock *lock);

/* For what asks a server: who comes while another thread does waits only where `needed`. */
bool tz_trylock_slow(struct tz_lock *lock, bool needed);
void tz_unlock(struct tz_lock *lock);

/* In a copy of the process: whoever held a lock is not there, and all are free. */
void tz_locks_forked(void);
