/* The process's umask, without changing it. */
#pragma once

#include "tz.h"

mode_t tz_umask(void);

/* It has changed. */
void tz_umask_set(mode_t mask);
