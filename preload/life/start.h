/* Entering and leaving a hook. The first one starts the library. */
#pragma once

#include "process/state.h"

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
