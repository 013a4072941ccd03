/* The control page beside the maps (docs/formats.md): which map is current, and whether to stop. */
#pragma once

#include "tz.h"

/* What the control page says: zeros as long as there is none. */
struct tz_said {
    uint64_t generation; /* 0: no map yet */
    bool stopped;
    bool mapped; /* the directory is one in which mappings are kept up to date */
    bool again;  /* the file has just been opened anew */
};

/* Costs no system call but now and then. */
void tz_control_look(struct tz_said *said);

/*
 * The path of a file beside it: <directory>/<name>, with the number behind it unless it is 0. False where it is too
 * long, or lies in a directory beside the spools that others could change.
 */
bool tz_control_path(char *out, size_t size, const char *name, uint64_t number);
