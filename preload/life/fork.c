/* The fork handler, and what a copy of the process must forget: each part knows its own. */
#include "life/fork.h"
#include "base/lock.h"
#include "names/counters.h"
#include "names/paths.h"
#include "process/files.h"
#include "process/scratch.h"
#include "process/state.h"
#include "record/node.h"
#include "record/recorder.h"
#include "record/spool.h"

static void forked(void)
{
    tz_owner_forked();
    tz_locks_forked();
    tz_scratch_forked();
    tz_paths_forked();
    tz_counters_forked();
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

/* What pthread_atfork calls. Another libc than glibc has none, and refuses to start a program for it. */
int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

bool tz_fork_begin(void)
{
    if (!__register_atfork)
        return false;
    tz_owner_begin(forked);
    __register_atfork(NULL, NULL, fork_child, __dso_handle);
    return true;
}
