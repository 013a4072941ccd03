/* Opening through liblustreapi.so.1: TARAZU_APPLY=llapi. */
#pragma once

#include "place/create.h"

/* The first open; -1 with errno, ENOSYS when the library cannot be used. */
int tz_llapi_open(const struct tz_create *create, const struct tz_plan *plan, enum tz_request_lists lists, int flags);
