/* The placement map (docs/formats.md): read-only, trusted only after checks. */
#pragma once

#include "core/lov_request.h"
#include "core/template.h"

enum { TZ_MAP_HEADER = 128, TZ_ROW_HEAD = 24 };

struct tz_map {
    const uint8_t *base;
    uint64_t length;
    uint8_t key[16];
    uint64_t generation, created_s, expires_s;
    uint32_t ost_count; /* of the file system that has most */
    uint32_t layout_count, row_count;
    const uint8_t *layouts;
    const uint8_t *rows;
    uint64_t rows_length;
    const uint8_t *index;
    uint64_t slots;
    uint32_t index_bits; /* of an index entry: where the row is */
};

struct tz_row {
    uint64_t hash, loose_hash;
    uint32_t id;
    uint16_t layout;
    uint16_t ost_count;
    const uint16_t *osts;
};

enum tz_found {
    TZ_FOUND_NOT,
    TZ_FOUND_EXACT,
    TZ_FOUND_PRECISE,
    TZ_FOUND_PRECISE_ANY,
    TZ_FOUND_LOOSE,
    TZ_FOUND_LOOSE_ANY,
};

/* Checks header, layouts and their checksum. Returns NULL, else what is wrong with the map in a few words. */
TZ_API const char *tz_map_check(const void *base, uint64_t length, struct tz_map *map);

struct tz_query {
    const char *fs, *key;
    size_t fs_length, key_length;
    const struct tz_names *names;
    int32_t rank;
    uint32_t n_precise, n_loose;
};

TZ_API uint64_t tz_hash_exact(const uint8_t key[16], const char *fs, size_t fs_length, const char *name, size_t length);
TZ_API uint64_t tz_hash_template(const uint8_t key[16], char kind, const char *fs, size_t fs_length, const char *text,
                                 size_t length, int32_t rank, uint32_t n);

/* Finds the row of a name in the documented order; the row's indices are below its file system's count of OSTs. */
TZ_API enum tz_found tz_map_lookup(const struct tz_map *map, const struct tz_query *query, struct tz_row *row);
TZ_API bool tz_map_find(const struct tz_map *map, uint64_t hash, struct tz_row *row);
TZ_API void tz_map_layout(const struct tz_map *map, uint16_t index, struct tz_layout *layout);
