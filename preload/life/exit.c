/* The end of the process, by whichever way: libc's exit, _exit and its kin. */
#include "life/exit.h"
#include "process/files.h"
#include "process/state.h"
#include "record/recorder.h"
#include "record/spool.h"

int __cxa_atexit(void (*function)(void *), void *argument, void *object);

static void at_exit(void *unused)
{
    (void)unused;
    tz_exit(true);
}

/*
 * What is registered before libc registers the loader's own handler runs after it: after the destructors of all
 * libraries, some of which (libgfortran) still write and close files.
 */
void tz_exit_begin(void)
{
    __cxa_atexit(at_exit, NULL, NULL);
}

void tz_exit(bool streams)
{
    int saved = errno;

    /* A signal handler that ends the process in the middle of a hook: its thread may hold what we would wait for. */
    if (tz_load(&tz_state) != TZ_ON || tz_config.recorder == TZ_RECORD_OFF || tz_depth)
        return;
    tz_depth++;
    tz_mine = 0;
    if (tz_load(&tz_files_beyond) && tz_owner()) {
        if (streams)
            tz_record_streams();
        tz_files_each(0, TZ_FDS_MAX - 1, tz_record_close);
    }
    tz_spool_end();
    tz_depth--;
    errno = saved;
}
