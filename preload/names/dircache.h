/* Directories seen before: what the kernel says each one is, looked up without a system call. */
#pragma once

#include "process/mounts.h"
#include "process/scratch.h"

struct tz_dir {
    uint64_t hash;
    struct tz_mount *mount; /* NULL: outside the managed mounts */
    uint32_t raw_length, below_length;
    char text[]; /* the directory as given, then the resolved path below the mount */
};

static inline const char *tz_dir_below(const struct tz_dir *dir)
{
    return dir->text + dir->raw_length;
}

const struct tz_dir *tz_dircache_find(const char *raw, size_t length);

/*
 * Resolves a directory and remembers it. `resolved`: it comes from the kernel as it is. NULL when it does not exist.
 * The result may live in the scratch when it cannot be remembered.
 */
const struct tz_dir *tz_dircache_add(const char *raw, size_t length, bool resolved, struct tz_scratch *scratch);

/* Does a path, as the kernel has it, lie in a managed mount? */
bool tz_dircache_managed(const char *path, size_t length, struct tz_scratch *scratch);

void tz_dircache_forked(void);
