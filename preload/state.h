/*
 * Whether a hook acts: state of the library, per-thread guard, owner of the memory, and locks that never wait long.
 */
#ifndef TZ_STATE_H
#define TZ_STATE_H

#include "config.h"

enum tz_state { TZ_UNKNOWN, TZ_STARTING, TZ_OFF, TZ_ON };

extern int tz_state;    /* atomic */
extern int tz_counting; /* recorder mode full: writes are counted */
extern __thread int tz_depth __attribute__((tls_model("initial-exec")));
extern __thread int tz_mine
    __attribute__((tls_model("initial-exec"))); /* answer of tz_owner in this hook, 0: not asked */

extern __thread int tz_uncertain
    __attribute__((tls_model("initial-exec"))); /* this thread has called vfork: is it the child that runs on? */
extern int tz_memory_shared;                    /* atomic: another process runs in this memory */

/* Reads the settings at the first hook. True when the library is on. */
bool tz_start(void);

/* Between enter and leave every hook of this thread passes straight on. */
static inline bool tz_enter(void)
{
    int state = tz_relaxed(&tz_state);

    if (tz_likely(state == TZ_OFF) || tz_depth)
        return false;
    if (tz_unlikely(state != TZ_ON) && !tz_start())
        return false;
    tz_depth = 1;
    tz_mine = 0;
    return true;
}

static inline void tz_leave(void)
{
    tz_depth = 0;
}

/*
 * True in the process whose state this memory is. A child that shares it (vfork, CLONE_VM) gets false and must
 * leave everything alone; a forked copy is made a process of its own first.
 */
bool tz_owner(void);

/*
 * The same, asking the kernel only after a vfork or clone. Those made past libc are not seen: for what such a child
 * may know better, directories and numbers of names, not for descriptors and records.
 */
bool tz_owner_quick(void);

/* A lock that is given up after a bounded time; false when it could not be had. Never taken outside a hook. */
struct tz_lock {
    int held;
    int hangs; /* of those held by tz_trylock_slow: somebody has waited in vain */
};

bool tz_trylock(struct tz_lock *lock);

/*
 * For what asks a server: who comes while another thread does waits only where `needed`, and once somebody has waited
 * in vain nobody else does.
 */
bool tz_trylock_slow(struct tz_lock *lock, bool needed);
void tz_unlock(struct tz_lock *lock);

/* Private zeroed memory, never from malloc (hooks run inside of it); NULL when there is none. */
void *tz_pages(size_t size);
void tz_pages_free(void *pages, size_t size);

/* Called once in a forked child, each by the part that owns the state. */
void tz_paths_forked(void);
void tz_counters_forked(void);
void tz_spool_forked(void);
void tz_node_forked(void);
void tz_record_forked(void);
void tz_files_forked(void);
void tz_scratch_forked(void);
void tz_map_forked(void);

uint64_t tz_now_ns(void);
uint64_t tz_about_now_s(void);

/* Room for one operation on a managed name, too large for a thread's stack. */
struct tz_scratch {
    int slot;                 /* -1: none, unmapped after use */
    const struct tz_map *map; /* atomic: the placement map that this operation reads, which must stay mapped */
    struct tz_names names;
    char raw[2 * TZ_PATH_MAX];
    char key[TZ_KEY_MAX];
    char text[TZ_PATH_MAX];
    _Alignas(16) uint8_t lov[65536];
    uint8_t request[65536];
};

struct tz_scratch *tz_scratch_get(void);
void tz_scratch_put(struct tz_scratch *scratch);

/* Does an operation under way read this map? */
bool tz_scratch_holds(const struct tz_map *map);

#endif
