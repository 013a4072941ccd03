/* The control page beside the maps (docs/formats.md): which map is current, and whether to stop. */
#ifndef TZ_CONTROL_H
#define TZ_CONTROL_H

#include "stop.h"

struct tz_control {
    struct tz_lock lock;
    const uint8_t *page;          /* atomic: mapped, where a mapping shows what other nodes store */
    uint64_t due_ns;              /* atomic: the next look at the file */
    uint64_t generation, stopped; /* atomic: as the last look found them, where there is no such mapping */
    int found;                    /* atomic: one has found them */
};

/* Costs no system call but now and then. Says nothing while `directory` has no control page. */
void tz_control_look(struct tz_control *control, const char *directory, struct tz_said *said);

/* <directory>/<name>, with the number behind it unless it is 0. */
bool tz_control_path(char *out, size_t size, const char *directory, const char *name, uint64_t number);

#endif
