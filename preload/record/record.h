/* One record, as spools and the node file hold it (docs/formats.md, "Spool"). */
#pragma once

#include "tz.h"

enum tz_record_type { TZ_CREATE = 1, TZ_CLOSE = 2, TZ_END = 3, TZ_OPEN = 4 };
enum { TZ_RECORD_HEAD = 16, TZ_PARTS = 5 };

/* Places in the fixed part of a close record. */
enum {
    TZ_CLOSE_SIZE = 0,
    TZ_CLOSE_WRITTEN = 8,
    TZ_CLOSE_LOW = 16,
    TZ_CLOSE_HIGH = 24,
    TZ_CLOSE_WRITES = 32,
    TZ_CLOSE_SEGMENTS = 36,
    TZ_CLOSE_OPENED = 40,
    TZ_CLOSE_LENGTHS = 48,
    TZ_CLOSE_FIXED = 56
};

/* One record: its fixed part from byte 16 on, then the texts, of which the second is the key. */
struct tz_record {
    enum tz_record_type type;
    uint16_t flags;
    const uint8_t *fixed;
    size_t fixed_length;
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
