/* Which directories are on Lustre, and on what kind of file system others are. Asks no server. */
#pragma once

#include "tz.h"

enum { TZ_MOUNTS_MAX = 32 };

struct tz_mount {
    uint32_t path_length, fs_length, below_length;
    uint32_t real_length; /* atomic, written after `real` */
    uint32_t foreign;     /* atomic: found out not to be what it was taken for */
    char fs[TZ_FS_MAX];
    char path[256];  /* without a slash at the end */
    char real[256];  /* the same without symbolic links: of the mount table's at once, else after the first use */
    char below[256]; /* directory of the file system that is mounted here, "" for its root */
};

extern struct tz_mounts {
    uint32_t count;
    bool in_system[3];  /* one lies below /proc, /sys or /dev: test beds may */
    bool stop_is_local; /* the site's stop file lies on a file system of this node */
    struct tz_mount list[TZ_MOUNTS_MAX];
} tz_mounts;

/* Reads TARAZU_MOUNTS, else the mount entries of Lustre; false when there are none. */
bool tz_mounts_read(void);

/* Does a mapping on this device show what other nodes store? By the type of its mount. */
bool tz_mount_is_coherent(uint64_t dev);

/*
 * A layout was refused by `error`: when it is one that file systems other than Lustre give, the mount is asked what it
 * is. Otherwise the mount table (or TARAZU_MOUNTS) is believed: statfs would ask the servers in each process.
 */
void tz_mount_doubt(struct tz_mount *mount, int error);
