/* Whether a hook acts: state of the library, per-thread guard, and the process that this memory belongs to. */
#pragma once

#include "process/config.h"

enum tz_state { TZ_UNKNOWN, TZ_STARTING, TZ_OFF, TZ_ON };

extern int tz_state;               /* atomic */
extern int tz_counting;            /* recorder mode full: writes are counted */
extern int tz_memory_shared;       /* atomic: another process runs in this memory */
extern TZ_THREAD int tz_depth;     /* this thread is in a hook, and all others pass straight on */
extern TZ_THREAD int tz_mine;      /* answer of tz_owner in this hook, 0: not asked */
extern TZ_THREAD int tz_uncertain; /* this thread has called vfork: is it the child that runs on? */

/*
 * This memory is this process's from now on. `copied` is the library's one call upward: a copy that a raw clone made
 * is noticed in whichever hook first asks below, and all parts above must then forget what was the parent's.
 */
void tz_owner_begin(void (*copied)(void));

/* The part of this in becoming a process of its own. */
void tz_owner_forked(void);

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
