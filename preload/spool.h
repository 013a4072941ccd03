/* The spool: records of this process in a shared mapping, so that they outlive it (docs/formats.md, "Spool"). */
#ifndef TZ_SPOOL_H
#define TZ_SPOOL_H

#include "state.h"

enum tz_record_type { TZ_CREATE = 1, TZ_CLOSE = 2, TZ_END = 3, TZ_OPEN = 4 };
enum { TZ_RECORD_HEAD = 16, TZ_PARTS = 5 };

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

/*
 * Writes a record: over the one of the same type and key, where this process has one that is long enough, else behind
 * all others. Lost, and counted, when there is no room.
 */
void tz_spool_write(const struct tz_record *record);

/* Has this process made the file of that key? */
bool tz_spool_made(const struct tz_part texts[2]);

/* A file is opened again to be written: if this process has made it, its close no longer counts. */
void tz_spool_reopened(const struct tz_part texts[2]);

/* The process ends: its spool goes behind those that ended before, at the length that it needs. */
void tz_spool_end(void);

#endif
