/* Whether a file gets a layout of ours. */
#pragma once

#include "place/create.h"

/* Looks the name up and fills the outcome; true when the file is to be placed by `plan`. */
bool tz_place_decide(struct tz_create *create, struct tz_plan *plan);

/*
 * A file that this open has not created is open for writing at `fd`. When it is a planned one whose maker is still
 * making its late components' objects, waits for that (see tz_place_settle).
 */
void tz_place_opened(struct tz_create *create, int fd);

/* The process's umask has changed. */
void tz_umask_set(mode_t mask);
