/* Where spools lie, and the memory behind them. */
#pragma once

#include "base/rawsys.h"

/* <spool directory>/<host>.<name> */
bool tz_spool_path(char *out, size_t size, const char *name);

/* Opens a file that all processes of the node share, and looks at it; -1 where it is not a file of this user's. */
int tz_spool_open(const char *name, int flags, struct tz_stat *st);

/* Makes the spool directory; false for one that others could change. */
bool tz_spool_directory(void);

/* Reserves the memory of [from, to) of a file: touching a hole would be SIGBUS where the memory file system is full. */
bool tz_spool_fill(int fd, uint64_t from, uint64_t to);
