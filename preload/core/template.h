/* Templates: what remains of a name when job id, date, pid, host and rank are taken out (docs/formats.md, "Names"). */
#pragma once

#include "tz.h"

/* What is known of the process that creates the file; empty strings, rank and index -1 and pid 0 match nothing. */
struct tz_ident {
    const char *job_id;
    const char *array_job; /* id that the tasks of a job array share */
    const char *host;
    int32_t rank;
    int32_t pid;
    int32_t array_index;
};

enum tz_name_flags {
    TZ_NAME_VOLATILE = 1, /* holds {job}, {date}, {pid} or {host} */
    TZ_NAME_RAW = 2,      /* a template did not fit: both are the key itself */
};

struct tz_names {
    uint32_t flags;
    uint32_t precise_length;
    uint32_t loose_length;
    char precise[TZ_TEMPLATE_MAX];
    char loose[TZ_TEMPLATE_MAX];
};

/* Returns 0, or ENAMETOOLONG for a key that no template can hold. */
TZ_API int tz_template(const char *key, size_t length, const struct tz_ident *ident, struct tz_names *names);
