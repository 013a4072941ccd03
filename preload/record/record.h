/* One record, as spools and the node file hold it (docs/formats.md, "Spool"). */
#pragma once

#include "tz.h"

enum tz_record_type { TZ_CREATE = 1, TZ_CLOSE = 2, TZ_END = 3, TZ_OPEN = 4 };
enum { TZ_RECORD_HEAD = 16, TZ_PARTS = 5 };

/* What a create record says beside its texts. */
struct tz_create_values {
    uint32_t precise, loose; /* n */
    uint8_t outcome, found;
    uint16_t refusal;
    uint32_t row_id;
    uint64_t generation;
};

/* What a close record says. */
struct tz_close_values {
    uint64_t size, written, low, high;
    uint32_t writes, segments;
    uint64_t opened_ns;
};

_Static_assert(sizeof(struct tz_create_values) == 24 && sizeof(struct tz_close_values) == 48, "no gaps");

/* Its values from byte 16 on, the lengths of the texts, then the texts, of which the second is the key. */
struct tz_record {
    enum tz_record_type type;
    uint16_t flags;
    const void *values;
    size_t values_length;
    unsigned parts;
    struct tz_part {
        const void *data;
        size_t length;
    } texts[TZ_PARTS];
};

size_t tz_record_length(const struct tz_record *record);
void tz_record_put(const struct tz_record *record, size_t length, uint8_t *to);

/*
 * Over an earlier record of the same type and key: a close is added to what is there; a create keeps only its time,
 * that of the first. False: there is no room for it.
 */
bool tz_record_rewrite(const struct tz_record *record, size_t length, uint8_t *at);
