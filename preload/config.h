/* Settings of this process, read once from the environment at the first hook; see docs for each variable. */
#ifndef TZ_CONFIG_H
#define TZ_CONFIG_H

#include "names.h"

enum tz_mode { TZ_OBSERVE, TZ_ADVISE, TZ_PLACE };
enum tz_recorder { TZ_RECORD_FULL, TZ_RECORD_LIGHT, TZ_RECORD_OFF };
enum { TZ_MOUNTS_MAX = 32, TZ_PATH_MAX = 4096, TZ_GLOBS_MAX = 4096 };

struct tz_mount {
    char path[256]; /* without a slash at the end */
    char real[256]; /* the same without symbolic links, known after the first use */
    char fs[TZ_FS_MAX];
    char below[256]; /* directory of the file system that is mounted here, "" for its root */
    uint32_t path_length, fs_length, below_length;
    uint32_t real_length; /* atomic, written after `real` */
    uint32_t foreign;     /* atomic: found out not to be Lustre */
};

struct tz_config {
    enum tz_mode mode;
    enum tz_recorder recorder;
    bool llapi;           /* TARAZU_APPLY=llapi */
    bool hints;           /* TARAZU_LISTS=hints */
    char spool[1024];     /* empty: no recording */
    uint64_t spool_limit; /* bytes of all spools on this node; 0: the library chooses */
    char map[1024];       /* the directory of the control page and the maps; empty: none */
    char stop[1024];      /* the site's stop file; empty: not looked at here */
    char job[TZ_JOB_MAX], array_job[TZ_JOB_MAX], host[TZ_HOST_MAX], program[64];
    char include[TZ_GLOBS_MAX], exclude[TZ_GLOBS_MAX];
    int64_t trusted_uid;
    int32_t ranks;
    struct tz_ident ident;
    bool in_system[3]; /* a mount lies below /proc, /sys or /dev: test beds may */
    uint32_t mount_count;
    struct tz_mount mounts[TZ_MOUNTS_MAX];
};

extern struct tz_config tz_config;

/* Fills tz_config; false when there is nothing to do for this process. */
bool tz_config_read(void);

/* Reads mount entries of type lustre from /proc/self/mounts, or of TARAZU_MOUNTS. */
void tz_mounts_read(const char *setting);

/* Does a mapping on this device show what other nodes store? By the type of its mount; no server is asked. */
bool tz_mount_is_coherent(uint64_t dev);

/* Is a key wanted by TARAZU_INCLUDE and TARAZU_EXCLUDE, and no lock test of OMPIO? */
bool tz_key_wanted(const char *key, size_t length);

/* A list of ':'-separated globs. */
bool tz_glob_any(const char *globs, const char *text);

#endif
