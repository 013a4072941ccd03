/* What the control groups of this process leave of memory: a job's limit counts its spools too. */
#pragma once

#include "tz.h"

/* The least that one of them allows, in bytes; UINT64_MAX where there is no limit, or none can be read. */
uint64_t tz_cgroup_limit(void);

/* What the fullest of them has left, in bytes; what the kernel can take back of files counts as left. */
uint64_t tz_cgroup_free(void);
