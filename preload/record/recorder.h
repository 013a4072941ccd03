/* The recorder: what becomes of managed files, from creation to the last close. */
#pragma once

#include "base/rawsys.h"
#include "place/create.h"
#include "process/files.h"

#include <stdio.h>

enum tz_made { TZ_NOT_MADE, TZ_MADE, TZ_MADE_NOTED, TZ_WAS_OPEN };

/* After the file is open, `st` what it is, NULL: not known: writes the record. Says whether this open made the file,
 * and whether only the node knows. */
enum tz_made tz_record_create(struct tz_create *create, const struct tz_stat *st);

/* Follows a descriptor that can be written; `stream` or NULL. */
void tz_record_open(int fd, const struct tz_stat *st, const struct tz_where *where, int flags, enum tz_made made,
                    FILE *stream);

/* Follows standard output and error that were opened by the program before this one (a shell's redirection). */
void tz_record_adopt(void);

/*
 * A close in two halves, since the size can only be read before it. `written`: nothing that a stream still held was
 * lost.
 */
struct tz_closing {
    struct tz_file *file;
    uint64_t size;
    bool record;
};

void tz_record_closing(int fd, FILE *stream, struct tz_closing *closing);
void tz_record_closed(struct tz_closing *closing, bool written);

/* For a descriptor that is, or is as good as, closed already. */
void tz_record_close(int fd);

/* The process ends: what streams still hold is written after the last hook. */
void tz_record_streams(void);

void tz_record_forked(void);
