/* The end of the process. */
#pragma once

#include "tz.h"

/* From now on exit() ends the recording, after the destructors of all libraries. */
void tz_exit_begin(void);

/* The process ends, after flushing its streams or without: closes of what is still open, then the end record. */
void tz_exit(bool streams);
