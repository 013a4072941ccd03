/*
 * The lustre.lov attribute: lov_user_md_v1, _v3, SPECIFIC and lov_comp_md_v1 of Lustre's user interface.
 * Decoding is bounds-checked against hostile input; what was decoded encodes to the same bytes.
 */
#ifndef TZ_LOV_H
#define TZ_LOV_H

#include "tz.h"

#define TZ_LOV_V1 0x0BD10BD0u
#define TZ_LOV_V3 0x0BD30BD0u
#define TZ_LOV_SPECIFIC 0x0BD50BD0u
#define TZ_LOV_COMPOSITE 0x0BD60BD0u

enum {
    TZ_LOV_HEAD = 32,   /* lov_comp_md_v1 without entries; also lov_user_md_v1 without objects */
    TZ_LOV_ENTRY = 48,  /* lov_comp_md_entry_v1 */
    TZ_LOV_MD_V3 = 48,  /* lov_user_md_v3 without objects */
    TZ_LOV_OBJECT = 24, /* lov_user_ost_data_v1 */
    TZ_LOV_POOL = 16,
    TZ_LOV_MAX = 65536,       /* no attribute is longer */
    TZ_LCME_INIT = 0x10,      /* component is instantiated */
    TZ_LCME_EXTENSION = 0x40, /* the space into which the component before it grows (SEL) */
    TZ_PATTERN_RAID0 = 0x1,
    TZ_PATTERN_MDT = 0x100,
    TZ_PATTERN_OVERSTRIPED = 0x200,
    TZ_OFFSET_ANY = 0xffff,
};
#define TZ_LCME_NEGATE 0x80000000u

struct tz_lov {
    uint32_t magic;
    uint32_t size;
    uint32_t generation; /* of a composite */
    uint16_t flags;
    uint16_t entries; /* 1 for a plain layout */
    uint8_t rest[16]; /* mirror count and padding, as found */
};

struct tz_lov_entry {
    uint32_t id, flags;
    uint64_t start, end;
    uint32_t offset, size; /* of its lov_user_md in the blob */
    uint32_t generation;
    uint8_t rest[12]; /* time stamp, mirror link, EC and compression fields, as found */
    /* from here: lov_user_md */
    uint32_t magic, pattern;
    uint64_t object_id, object_seq;
    uint32_t stripe_size; /* of an extension component: its extension size in KiB */
    uint16_t stripe_count;
    uint16_t stripe_offset; /* layout generation of an existing file */
    uint32_t objects;       /* how many are in the blob */
    char pool[TZ_LOV_POOL];
};

struct tz_lov_object {
    uint64_t id, seq;
    uint32_t generation, ost;
};

/* All return 0 or an errno: EINVAL for a malformed blob, EOPNOTSUPP for a kind that is not one of the four. */
TZ_API int tz_lov_check(const void *blob, size_t length, struct tz_lov *lov);
TZ_API int tz_lov_entry(const void *blob, size_t length, uint32_t i, struct tz_lov_entry *entry);
TZ_API int tz_lov_object(const void *blob, size_t length, const struct tz_lov_entry *entry, uint32_t i,
                         struct tz_lov_object *object);

/* Writes what was decoded; `objects` are those of all entries in order. Returns the length, 0 when it does not fit. */
TZ_API size_t tz_lov_encode(const struct tz_lov *lov, const struct tz_lov_entry *entries,
                            const struct tz_lov_object *objects, void *blob, size_t capacity);

/* A component of a layout that is asked for: the 64 bytes of the placement map. */
struct tz_component {
    uint64_t start, end;
    uint32_t stripe_size;
    uint16_t stripe_count;
    uint16_t first_ost; /* in the row's list */
    uint32_t pattern;
    uint32_t flags;
    uint64_t extension;
    char pool[TZ_LOV_POOL];
    uint64_t zero;
};

enum tz_component_flags { TZ_COMP_LIST = 1, TZ_COMP_HINT = 2, TZ_COMP_SEL = 4 };

struct tz_layout {
    const struct tz_component *components;
    uint16_t count;
    bool composite;
};

enum tz_request_lists {
    TZ_LISTS_ALL = 0,
    TZ_LISTS_FIRST = 1,    /* components that do not start at 0 get start hints */
    TZ_LISTS_NONE = 2,     /* all get start hints */
    TZ_LISTS_ANYWHERE = 3, /* not even hints */
};

/*
 * The blob that asks for the components from number `from` on. Returns its length, 0 when the layout
 * is not well formed or does not fit.
 */
TZ_API size_t tz_lov_request(const struct tz_layout *layout, const uint16_t *osts, uint32_t ost_count, uint16_t from,
                             enum tz_request_lists lists, void *blob, size_t capacity);

enum tz_lov_verdict {
    TZ_LOV_AS_ASKED,
    TZ_LOV_LATE,  /* a component with an explicit list is not instantiated */
    TZ_LOV_OTHER, /* the file has a layout of someone else */
};

/* Compares what a file has with what was asked; `late` is the first component (not entry) that is late. */
enum tz_lov_verdict tz_lov_compare(const void *blob, size_t length, const struct tz_layout *layout,
                                   const uint16_t *osts, enum tz_request_lists lists, uint16_t *late);

#endif
