/* Where spools lie, and the memory behind them. */
#pragma once

#include "base/rawsys.h"

/*
 * A descriptor of the directory of this node's spools, for the steps of one operation; -1 where there is none that
 * nobody else can change. The caller closes it: what stays open would be in the program's way. `make`: if it is
 * missing.
 */
int tz_spool_directory(bool make);
void tz_spool_directory_close(int directory);

/* Keeps it open, if it is there, for all steps of this thread until it is let go: it is looked at once. */
void tz_spool_hold(void);
void tz_spool_let_go(void);

/*
 * Opens <host>.<name> there, and looks at it, unless O_EXCL makes it; -1 where it is not a file of this user's, under
 * this name alone.
 */
int tz_spool_open_in(int directory, const char *name, int flags, struct tz_stat *st);

/* The same in one step; with O_CREAT the directory is made as well. */
int tz_spool_open(const char *name, int flags, struct tz_stat *st);

bool tz_spool_remove(int directory, const char *name);

/* Reserves the memory of [from, to) of a file: touching a hole would be SIGBUS where the memory file system is full. */
bool tz_spool_fill(int fd, uint64_t from, uint64_t to);

/* That much memory was refused: for a second no piece as large is asked for, which each open and close would do. */
void tz_spool_refuse(uint64_t bytes);
bool tz_spool_refused(uint64_t bytes);
