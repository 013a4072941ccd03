/* Making a directory on an MDT of ours. */
#pragma once

#include "place/create.h"

/* What it returns, and errno, are what the application's own call would have given. */
int tz_place_mkdir(struct tz_create *create, uint16_t mdt);
