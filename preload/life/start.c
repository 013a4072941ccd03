/* The start of the library: at the first hook, or by its constructor where no hook came before. */
#include "life/start.h"
#include "life/exit.h"
#include "life/fork.h"
#include "process/mounts.h"
#include "record/recorder.h"

bool tz_start(void)
{
    int expected = TZ_UNKNOWN, saved = errno;
    bool on;

    if (!__atomic_compare_exchange_n(&tz_state, &expected, TZ_STARTING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return expected == TZ_ON;
    tz_depth = 1;
    on = tz_config_read() && tz_mounts_read() && tz_fork_begin();
    if (on)
        tz_counting = tz_config.recorder == TZ_RECORD_FULL;
    tz_store(&tz_state, on ? TZ_ON : TZ_OFF);
    if (on && tz_config.recorder != TZ_RECORD_OFF)
        tz_record_adopt();
    tz_depth = 0;
    errno = saved;
    return on;
}

__attribute__((constructor)) static void constructor(void)
{
    if (tz_relaxed(&tz_state) == TZ_UNKNOWN)
        tz_start();
    if (tz_relaxed(&tz_state) == TZ_ON)
        tz_exit_begin();
}
