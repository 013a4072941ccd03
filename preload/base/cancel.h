/* Steps in which a thread is not to be cancelled (pthread_cancel): what it has open then would stay open. */
#pragma once

#include <pthread.h>

/* What to give to tz_cancels_allow afterwards. A cancel that comes meanwhile waits for the program's next call. */
static inline int tz_cancels_hold(void)
{
    int before = PTHREAD_CANCEL_ENABLE;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void tz_cancels_allow(int before)
{
    pthread_setcancelstate(before, NULL);
}
