/* Waiting for whoever else is just making a planned file. */
#pragma once

#include "place/examine.h"

/*
 * Waits, for a second at most, until each late component of a new file has objects or falls back by itself.
 * `standing`: as tz_examine has just found it, with all lists.
 */
void tz_place_settle(struct tz_create *create, const struct tz_plan *plan, enum tz_standing standing, int fd);
