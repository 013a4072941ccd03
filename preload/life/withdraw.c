/* Switching the library off before, or once, the process may make but some system calls. */
#include "life/withdraw.h"
#include "base/real.h"
#include "life/exit.h"
#include "life/start.h"
#include "process/filter.h"

static void switch_off(void)
{
    tz_store(&tz_state, TZ_OFF);
    tz_store(&tz_counting, 0);
}

void tz_withdraw(void)
{
    int saved = errno;

    tz_exit(true);
    if (tz_enter()) {
        if (tz_owner()) /* in the child of a vfork all this is its parent's */
            switch_off();
        tz_leave();
    }
    tz_resolve_all(); /* later on, looking one up might take memory */
    errno = saved;
}

bool tz_withdrawn(void)
{
    static int looked;
    int saved = errno;

    if (tz_likely(tz_relaxed(&looked)))
        return false;
    tz_store(&looked, 1);
    if (tz_filtered())
        switch_off();
    errno = saved;
    return tz_load(&tz_state) == TZ_OFF;
}
