/* Giving a file a layout of ours without ever making the open fail. */
#pragma once

#include "place/create.h"

/* Opens and places. What it returns, and errno, are what the application's own call would have given. */
int tz_place_open(struct tz_create *create, const struct tz_plan *plan);

/*
 * A file that was not made by tz_place_open is open at `fd`. Who can write to it never gets a descriptor of a file
 * without layout, where the first write would fail: it gets one, or its maker is waited for.
 */
void tz_place_opened(struct tz_create *create, int fd);
