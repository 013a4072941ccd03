/* The spool: records of this process in a shared mapping, so that they outlive it (docs/formats.md, "Spool"). */
#pragma once

#include "record/record.h"

/*
 * Writes a record: over the one of the same type and key, where this process has one that is long enough, else behind
 * all others. Lost, and counted, when there is no room; kept for the next one while another thread is at it.
 */
void tz_spool_write(const struct tz_record *record);

/* Has this process made the file of that key? */
bool tz_spool_made(enum tz_record_type type, const struct tz_part texts[2]);

/* A file is opened again to be written: if this process has made it, its close no longer counts. */
void tz_spool_reopened(const struct tz_part texts[2]);

/* The process ends: its spool goes behind those that ended before, at the length that it needs. */
void tz_spool_end(void);

void tz_spool_forked(void);
