/* Reading the attribute lustre.lov, bounds-checked against hostile input. */
#pragma once

#include "tz.h"

#include "lustre.h"

/* What is in layouts that are never made, copied or completed here: they are another's. In an erasure-coded one the
 * components with parity say so, not those with data. */
enum tz_lov_odd {
    TZ_LOV_EC = 1,         /* erasure coded */
    TZ_LOV_COMPRESSED = 2, /* or said not to be */
    TZ_LOV_MIRROR = 4,     /* FLR: mirrors, their states and preferences */
    TZ_LOV_RELEASED = 8,   /* HSM */
    TZ_LOV_UNKNOWN = 16,   /* patterns and flags of a later Lustre, and of damaged files */
};

/* A whole attribute. */
struct tz_lov {
    bool composite;
    uint16_t entries; /* 1 for a plain layout */
    uint32_t mirrors;
    uint32_t odd; /* TZ_LOV_*, of the whole and of all entries; after tz_lov_check */
};

/* One of its entries, or all of a plain layout. */
struct tz_lov_entry {
    uint64_t start, end;
    uint32_t id;    /* 0 for a plain layout */
    uint32_t flags; /* LCME_FL_* */
    uint32_t pattern;
    uint32_t odd;         /* TZ_LOV_* */
    uint32_t stripe_size; /* of an extension component: its extension size in SEL_UNIT_SIZE */
    uint16_t stripe_count;
    uint16_t objects;   /* how many follow: none before they are made */
    uint16_t first_ost; /* that is asked for: the start index, or the first of a list; LOV_OFFSET_DEFAULT for none */
    const struct lov_user_ost_data_v1 *object;
    char pool[LOV_MAXPOOLNAME + 1];
};

/* Return 0 or an errno: EINVAL for a malformed attribute, EOPNOTSUPP for a kind that is neither plain nor composite. */
TZ_API int tz_lov_check(const void *blob, size_t length, struct tz_lov *lov);
TZ_API int tz_lov_entry(const void *blob, size_t length, uint32_t i, struct tz_lov_entry *entry);

/* Length of a lov_user_md without its objects; 0 for a magic that is none of the three. */
uint32_t tz_lov_md_size(uint32_t magic);

/*
 * Clears what is different in every file: object ids, their sequences and generations, the file's own identity, the
 * layout's generation. What cannot be read stays as it is.
 */
TZ_API void tz_lov_forget(void *blob, size_t length);
