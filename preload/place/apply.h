/* Giving a file a layout of ours without ever making the open fail. */
#pragma once

#include "place/create.h"

/* Opens and places. What it returns, and errno, are what the application's own call would have given. */
int tz_place_open(struct tz_create *create, const struct tz_plan *plan);

/*
 * A file that was not made by tz_place_open is open at `fd`, maybe a planned one that somebody is just making: who can
 * write to it gets one whose late components have their objects.
 */
void tz_place_opened(struct tz_create *create, int fd);
