/* Records of threads that could not take the spool's lock: whoever writes next writes them too. */
#pragma once

#include "record/record.h"

/* Keeps a copy; false when there is no memory, or too many are kept. */
bool tz_keep(const struct tz_record *record);

bool tz_any_kept(void);

/* Calls for each, the oldest first, and keeps none of them any longer. */
void tz_kept_each(void (*call)(const struct tz_record *record));

void tz_kept_forked(void);
