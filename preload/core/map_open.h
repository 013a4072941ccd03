/* Opening a map: check its owner, and map it. */
#pragma once

#include "base/rawsys.h"
#include "core/map.h"

enum { TZ_MAP_COPY_MAX = 16 << 20 };

/*
 * Maps and checks a file of owner root, this user or `trusted_uid` (-1: nobody else). NULL, else what is wrong. `copy`:
 * into memory, TZ_MAP_COPY_MAX at most, for files that another node may remove under a mapping.
 */
TZ_API const char *tz_map_open(const char *path, int64_t trusted_uid, bool copy, struct tz_map *map);
TZ_API void tz_map_close(struct tz_map *map);

/* Is a map or control page owned and protected as it must be, and at least `length` long? For an open descriptor. NULL,
 * and what it is. */
const char *tz_map_trust(int fd, int64_t trusted_uid, uint64_t length, struct tz_stat *st);
