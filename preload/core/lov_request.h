/* Planned layouts: as in a placement map, as lustre.lov, and compared with a file's layout. */
#pragma once

#include "tz.h"

#include "lustre.h"

/* A component of a planned layout: the 64 bytes of the placement map. */
struct tz_component {
    uint64_t start, end;
    uint32_t stripe_size;
    uint16_t stripe_count;
    uint16_t first_ost; /* in the row's list */
    uint32_t pattern;
    uint32_t flags;
    uint64_t extension;
    char pool[LOV_MAXPOOLNAME + 1];
    uint64_t zero;
};

enum tz_component_flags { TZ_COMP_LIST = 1, TZ_COMP_HINT = 2, TZ_COMP_SEL = 4 };

struct tz_layout {
    const struct tz_component *components;
    uint16_t count;
    bool composite;
    bool shared; /* several processes open the file */
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

/* The blob of lustre.lov.del for all components without objects. */
size_t tz_lov_deletion(void *blob, size_t capacity);

enum tz_lov_verdict {
    TZ_LOV_AS_ASKED,
    TZ_LOV_LATE,  /* a component with an explicit list is not instantiated */
    TZ_LOV_OTHER, /* the file has a layout of someone else */
};

/* Compares a file's layout with the planned one; `late` is the first component (not entry) that is late. */
enum tz_lov_verdict tz_lov_compare(const void *blob, size_t length, const struct tz_layout *layout,
                                   const uint16_t *osts, enum tz_request_lists lists, uint16_t *late);
