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
bool tz_opening_matters(int flags);

/*
 * `begin` is true when the path is managed; `end` records what was opened (fd -1: nothing) and gives everything back.
 * errno is kept by both.
 */
bool tz_opening_begin(struct tz_opening *opening, const struct tz_call *call);
void tz_opening_end(struct tz_opening *opening, int fd, FILE *stream);
