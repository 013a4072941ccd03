/* A creation: the call as the application made it, what is planned for the file, and what came of it. */
#pragma once

#include "base/rawsys.h"
#include "base/real.h"
#include "core/map.h"
#include "names/counters.h"
#include "names/paths.h"
#include "process/control.h"

#include <fcntl.h>

struct tz_plan {
    struct tz_row row;
    struct tz_layout layout;
};

/* What came of it: docs/formats.md, "Spool". */
enum tz_outcome { TZ_UNMANAGED, TZ_HIT, TZ_LATE, TZ_MISS, TZ_REFUSED, TZ_ADVISED, TZ_SKIPPED, TZ_RACED, TZ_PARTLY };
/* Why a file was skipped: in its record instead of an error number (docs/formats.md, "Spool"). */
enum tz_skip {
    TZ_OWN_LAYOUT = 1,
    TZ_NOT_WRITABLE,
    TZ_NO_LAYOUTS,
    TZ_APPENDED,
    TZ_NOT_PLAIN,
    TZ_BY_LIBC,
    TZ_HAS_LAYOUT,
};
enum tz_existence { TZ_PERHAPS, TZ_FRESH, TZ_EXISTED };

/* An open as the application asked for it. */
struct tz_call {
    enum tz_symbol symbol;
    int dirfd;
    const char *path;
    int flags;
    mode_t mode;
};

/* A managed create under way, and what came of it. */
struct tz_create {
    struct tz_call call;
    struct tz_scratch *scratch;
    struct tz_where where;
    struct tz_nth nth;
    struct tz_said said; /* by the control page, as this open found it */
    uint8_t outcome, found;
    uint16_t refusal;
    uint32_t row_id;
    uint64_t generation;
    uint32_t lov_length; /* of scratch->lov, the layout that the file has */
    uint16_t late;       /* of the plan's components, the first that has no objects yet or is missing */
    enum tz_existence existence;
    bool shared; /* by the plan */
};

static inline void tz_skipped(struct tz_create *c, enum tz_skip why)
{
    c->outcome = TZ_SKIPPED;
    c->refusal = (uint16_t)why;
}

/* The open call of the application, with other flags. */
int tz_call_open(const struct tz_call *call, int flags);
