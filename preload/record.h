/* The recorder: what becomes of managed files, from creation to the last close. */
#ifndef TZ_RECORD_H
#define TZ_RECORD_H

#include "counters.h"
#include "files.h"
#include "paths.h"
#include "rawsys.h"
#include "real.h"
#include "stop.h"

enum tz_outcome {
    TZ_UNMANAGED,
    TZ_HIT,
    TZ_LATE,
    TZ_MISS,
    TZ_REFUSED,
    TZ_ADVISED,
    TZ_SKIPPED,
    TZ_RACED,
    TZ_PARTLY,
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
    enum tz_existence existence;
};

enum tz_made { TZ_NOT_MADE, TZ_MADE, TZ_MADE_NOTED, TZ_WAS_OPEN };

/* After the file is open: writes the record. Says whether this open made the file, and whether only the node knows. */
enum tz_made tz_record_create(struct tz_create *create, int fd);

/* Follows a descriptor that can be written; `stream` or NULL. */
void tz_record_open(int fd, const struct tz_where *where, int flags, enum tz_made made, FILE *stream);

/* A close in two halves, since the size can only be read before it. */
struct tz_closing {
    struct tz_file *file;
    uint64_t size;
    bool record;
};

void tz_record_closing(int fd, FILE *stream, struct tz_closing *closing);
void tz_record_closed(struct tz_closing *closing);

/* Follows standard output and error that were opened by the program before this one (a shell's redirection). */
void tz_record_adopt(void);

/* The process ends, after flushing its streams or without: closes of what is still open, then the end record. */
void tz_record_exit(bool flush);

#endif
