/* Whether tarazu is switched off for this process: checked at every managed open. */
#pragma once

#include "process/control.h"

/*
 * True while the job's control page says so (its owner, or the site through the job's leader), or the site's stop file
 * is there: TARAZU_STOP, looked at once a second at most, and only where it lies on a file system of this node, so that
 * no server can make an open wait. `said` is what the control page says.
 */
bool tz_stopped(struct tz_said *said);
