/* Waiting for whoever else is just making a planned file. */
#pragma once

#include "place/examine.h"

/*
 * Waits, for a second at most, until each late component of a new file has objects or falls back by itself.
 * `standing`: as tz_examine has just found it, with all lists.
 */
void tz_place_settle(struct tz_create *create, const struct tz_plan *plan, enum tz_standing standing, int fd);

/*
 * The file at `fd` has no layout: its maker, on this node, is just giving it one. Waits for that, half a second at
 * most, and makes the default one where it does not come, as the MDS does when another node opens such a file.
 */
void tz_place_wait(struct tz_create *create, int fd);
