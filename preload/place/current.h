/* The placement map that is in force for this process, mapped and kept while it is used. */
#pragma once

#include "process/control.h"
#include "process/scratch.h"

/*
 * The map that the control page names, else an earlier one; NULL when there is none, or none any more. It stays mapped
 * until the scratch is put back.
 */
const struct tz_map *tz_current_map(struct tz_scratch *scratch, const struct tz_said *said);

/* The control page has been read anew: a map that could not be used may have come by now. */
void tz_current_retry(void);
