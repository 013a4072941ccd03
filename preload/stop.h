/* "Off means off": whether this process is to leave everything alone, asked at every managed open. */
#ifndef TZ_STOP_H
#define TZ_STOP_H

#include "state.h"

/* What the control page says: zeros as long as there is none. */
struct tz_said {
    uint64_t generation; /* 0: no map yet */
    bool stopped;
    bool mapped; /* the directory is one in which mappings are kept up to date */
    bool again;  /* the file has just been opened anew */
};

/*
 * True while the job's control page says so (its owner, or the site through the job's leader), or the site's stop file
 * is there: TARAZU_STOP, looked at once a second at most, and only where it lies on a file system of this node, so that
 * no server can make an open wait.
 */
bool tz_stopped(struct tz_said *said);

/* The job's own part (current.c): its control page, without a system call once it is mapped. */
void tz_control_said(struct tz_said *said);

/* A mount of this node, in the kernel's order: the last one at or above the stop file decides where that lies. */
void tz_stop_mounted(const char *point, size_t length, const char *type);

#endif
