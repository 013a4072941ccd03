/* Directories that only root and this user can change. */
#pragma once

#include "tz.h"

/*
 * A descriptor (O_PATH) of a directory of this user's, for the steps of one operation; the caller closes it. `path` is
 * absolute; with `make` what is missing of it is made. -1 where that fails, with EPERM where others could change what
 * lies there: every directory on the way has to be root's or this user's, and either writable by nobody else or sticky.
 */
int tz_trusted_directory(const char *path, bool make);
