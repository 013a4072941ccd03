/* Compares a file's layout with the planned one. */
#pragma once

#include "place/create.h"

enum tz_standing {
    TZ_AS_ASKED,
    TZ_OBJECTS_MISSING, /* components from create->late on have lists, but no objects yet */
    TZ_TAIL_MISSING,    /* components from create->late on are gone: somebody is about to replace them */
    TZ_OTHERS_LAYOUT,
    TZ_NO_LAYOUT,
    TZ_UNREADABLE,
};

/*
 * Reads the file's layout, compares it with what was asked, sets the outcome (a hit, or another process's layout) and
 * says which component is late. The outcome stays where there is no layout to be read.
 */
enum tz_standing tz_examine(struct tz_create *create, const struct tz_plan *plan, enum tz_request_lists lists, int fd);
