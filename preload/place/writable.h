/* From the descriptor that a new file is made with, for reading, to the one that the program asked for. */
#pragma once

#include "place/create.h"

/* The flags of the open that makes the file: the MDS makes no objects for it, and nobody borrows its handle to write.
 */
int tz_making_flags(int flags);

/*
 * The file at `fd` has just been made by this call: opens it for what the program asked, at the same number. Takes `fd`
 * over. What it returns, and errno, are what the program's own call would have given.
 */
int tz_writable(struct tz_create *create, int fd);
