/* "Off means off": whether this process is to leave everything alone, asked at every managed open. */
#ifndef TZ_STOP_H
#define TZ_STOP_H

#include "state.h"

/*
 * True while the job's control page says so (its owner, or the site through the job's leader), or the site's stop file
 * is there: TARAZU_STOP, looked at once a second at most, and only where it lies on a file system of this node, so that
 * no server can make an open wait.
 */
bool tz_stopped(void);

/* The job's own part (current.c): the control page, without a system call once it is mapped. */
bool tz_control_stopped(void);

/* A mount of this node, in the kernel's order: the last one at or above the stop file decides where that lies. */
void tz_stop_mounted(const char *point, size_t length, const char *type);

#endif
