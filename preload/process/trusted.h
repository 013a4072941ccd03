/* Directories that only root and this user can change. */
#pragma once

#include "tz.h"

/* Which directory it is; zeros: not known yet. Atomic. */
struct tz_identity {
    uint64_t dev, ino;
    uint32_t uid; /* this user's, when it was opened last */
};

/*
 * A descriptor (O_PATH) of a directory of this user's, for the steps of one operation; the caller closes it. `path` is
 * absolute; with `make` what is missing of it is made. -1 where that fails, with EPERM where others could change what
 * lies there: every directory on the way has to be root's or this user's, and either writable by nobody else or sticky.
 * Where `known` is what lies at `path` the way is not looked at again; else it becomes what was found.
 */
int tz_trusted_directory(const char *path, bool make, struct tz_identity *known);
