/* The spool: records of this process in a shared mapping, so that they outlive it (docs/formats.md, "Spool"). */
#ifndef TZ_SPOOL_H
#define TZ_SPOOL_H

#include "state.h"

enum tz_record_type { TZ_CREATE = 1, TZ_CLOSE = 2, TZ_END = 3 };

struct tz_part {
    const void *data;
    size_t length;
};

/* Appends one record: its fixed part from byte 16 on, then the texts. Lost, and counted, when there is no room. */
void tz_spool_append(enum tz_record_type type, uint16_t flags, const void *fixed, size_t fixed_length,
                     const struct tz_part *texts, int text_count);

/* Has this process a spool already? */
bool tz_spool_exists(void);

#endif
