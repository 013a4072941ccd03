/* From a path as an application gives it to (mount, key): docs/formats.md, "Names". */
#pragma once

#include "process/mounts.h"
#include "process/scratch.h"

struct tz_where {
    struct tz_mount *mount;
    char *key; /* in the scratch, NUL-terminated */
    uint32_t key_length;
};

/*
 * Finds mount and key of a path below `dirfd`. False for a path outside the managed mounts, and for one that cannot
 * name a regular file. The scratch is only touched when it is needed: pass a pointer to NULL, put it back after.
 */
bool tz_locate(int dirfd, const char *path, struct tz_scratch **scratch, struct tz_where *where);

/* The working directory has changed, or may have. */
void tz_cwd_changed(void);

void tz_paths_forked(void);
