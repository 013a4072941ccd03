/* Settings of this process, read once from the environment at the first hook; see docs for each variable. */
#pragma once

#include "core/template.h"
#include "process/trusted.h"

enum tz_mode { TZ_OBSERVE, TZ_ADVISE, TZ_PLACE };
enum tz_recorder { TZ_RECORD_FULL, TZ_RECORD_LIGHT, TZ_RECORD_OFF };
enum { TZ_GLOBS_MAX = 4096 };

/* What the leader has found on its node, for this process on the same; zeros and empty: not known. */
struct tz_here {
    struct tz_identity spool;
    uint64_t map_dev;
    char stop_type[16], map_type[16]; /* of a file system, as the mount table has it */
};

struct tz_config {
    enum tz_mode mode;
    enum tz_recorder recorder;
    bool llapi;       /* TARAZU_APPLY=llapi */
    bool hints;       /* TARAZU_LISTS=hints */
    char spool[1024]; /* empty: no recording */
    struct tz_here here;
    char spool_beside[1024]; /* <place>.<step> instead of <place>/<step>, whose place is somebody else's */
    uint64_t spool_limit;    /* bytes of all spools on this node; 0: the library chooses */
    char map[1024];          /* the directory of the control page and the maps; empty: none */
    char stop[1024];         /* the site's stop file; empty: not looked at here */
    char job[TZ_JOB_MAX], array_job[TZ_JOB_MAX], host[TZ_HOST_MAX], program[64];
    int64_t trusted_uid;
    int32_t ranks;
    struct tz_ident ident;
    const char *include, *exclude; /* NULL: none */
};

extern struct tz_config tz_config;

/* Fills tz_config; false when there is nothing to do for this process. */
bool tz_config_read(void);

/* Is a key wanted by TARAZU_INCLUDE and TARAZU_EXCLUDE, and no lock test of OMPIO? */
bool tz_key_wanted(const char *key, size_t length);
