/* Locks that never wait long. Never taken outside a hook. */
#pragma once

#include "tz.h"

struct tz_lock {
    int held;  /* atomic: free unless it is this process's number */
    int hangs; /* atomic: somebody has waited in vain */
};

/* Given up after a bounded time; false when it could not be had. Once somebody has waited in vain nobody else does. */
bool tz_trylock(struct tz_lock *lock);

/* For what asks a server: who comes while another thread does waits only where `needed`. */
bool tz_trylock_slow(struct tz_lock *lock, bool needed);
void tz_unlock(struct tz_lock *lock);

/* In a copy of the process: whoever held a lock is not there, and all are free. */
void tz_locks_forked(void);
