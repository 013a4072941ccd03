/* What the wrappers share. */
#ifndef TZ_HOOKS_H
#define TZ_HOOKS_H

#include "place.h"

/* An open through any of the wrapped calls. */
int tz_hook_open(const struct tz_call *call);

/*
 * The parts of an open, for the calls that return streams. `begin` is true when the path is managed and the flags
 * can write; `end` records what was opened (fd -1: nothing) and gives everything back. errno is kept by both.
 */
struct tz_opening {
    struct tz_create create;
    struct tz_plan plan;
    bool creates, place, stopped;
};

bool tz_opening_begin(struct tz_opening *opening, const struct tz_call *call);
void tz_opening_end(struct tz_opening *opening, int fd, FILE *stream);

#endif
