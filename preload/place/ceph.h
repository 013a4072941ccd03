/* Giving a new file of a CephFS a data pool of ours, without ever making the open fail. */
#pragma once

#include "place/create.h"

/* Opens and places. What it returns, and errno, are what the application's own call would have given. */
int tz_ceph_open(struct tz_create *create, const struct tz_plan *plan);
