/* n of a created name: how many names of its template this process has created before (docs/formats.md, "Names"). */
#pragma once

#include "core/template.h"
#include "process/mounts.h"

struct tz_counter {
    uint64_t key, value; /* atomic */
};

struct tz_nth {
    uint32_t precise, loose;     /* UINT32_MAX: nobody has counted, and no row of a map has that */
    bool again;                  /* the name was created before by this process and keeps its n */
    struct tz_counter *slots[3]; /* of the name and its templates; NULL when there was no room */
};

#define TZ_NO_NTH ((struct tz_nth){.precise = UINT32_MAX, .loose = UINT32_MAX})

/* The slot of a key of one's own (not 0), made when it is new; NULL when there is no room for it. */
struct tz_counter *tz_counters_slot(uint64_t key);

/* Takes the numbers of a name that is about to be created. */
void tz_counters_take(const struct tz_mount *mount, const char *key, size_t key_length, const struct tz_names *names,
                      struct tz_nth *nth);

/* The file was not created: gives the numbers back, unless a later name has taken the next ones. */
void tz_counters_return(const struct tz_nth *nth);

void tz_counters_forked(void);
