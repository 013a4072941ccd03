/* The parts of an open that all wrapped calls share, whatever they return. */
#pragma once

#include "place/create.h"

#include <stdio.h>

struct tz_opening {
    struct tz_create create;
    struct tz_plan plan;
    bool creates, place, stopped;
};

/* The flags of an open that the recorder or placement can care about: most opens of a program end here. */
static inline bool tz_opening_matters(int flags)
{
    if (flags & O_PATH)
        return false;
#ifdef O_TMPFILE
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return false; /* no name, and not supported by Lustre */
#endif
    return (flags & O_CREAT) || (flags & O_ACCMODE) != O_RDONLY;
}

/*
 * `begin` is true when the path is managed; `end` records what was opened (fd -1: nothing) and gives everything back.
 * errno is kept by both.
 */
bool tz_opening_begin(struct tz_opening *opening, const struct tz_call *call);
void tz_opening_end(struct tz_opening *opening, int fd, FILE *stream);
