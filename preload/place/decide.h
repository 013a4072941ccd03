/* Whether a file gets a layout of ours. */
#pragma once

#include "place/create.h"

/* Looks the name up and fills the outcome; true when the file is to be placed by `plan`. */
bool tz_place_decide(struct tz_create *create, struct tz_plan *plan);

/* The plan of a file that this process opens and does not create, and what found it. */
enum tz_found tz_place_find(struct tz_create *create, struct tz_plan *plan);

/* The process's umask has changed. */
void tz_umask_set(mode_t mask);
