/* Placement: whether a file gets a layout of ours, and giving it one without ever making the open fail. */
#ifndef TZ_PLACE_H
#define TZ_PLACE_H

#include "map.h"
#include "record.h"

/* Lustre's O_LOV_DELAY_CREATE: two flags that make no sense together on a regular file. */
#define TZ_DELAY_CREATE (O_NOCTTY | O_ASYNC)

struct tz_plan {
    struct tz_row row;
    struct tz_layout layout;
    bool alone; /* no other process can have the file open while its open call lasts */
};

/* Looks the name up and fills the outcome; true when the file is to be placed by `plan`. */
bool tz_place_decide(struct tz_create *create, struct tz_plan *plan);

/* The open call of the application, with other flags. */
int tz_call_open(const struct tz_call *call, int flags);

/* Opens and places. What it returns, and errno, are what the application's own call would have given. */
int tz_place_open(struct tz_create *create, const struct tz_plan *plan);

/* The process's umask changed. */
void tz_umask_set(mode_t mask);

/* The first open through liblustreapi; -1 with errno, ENOSYS when the library cannot be used. */
int tz_llapi_open(const struct tz_create *create, const struct tz_plan *plan, enum tz_request_lists lists, int flags);

/* Operations on a descriptor, all 0 or an errno. */
int tz_layout_set(int fd, const struct tz_plan *plan, enum tz_request_lists lists, struct tz_scratch *scratch);
int tz_layout_set_blob(int fd, void *blob, size_t length, bool composite);
int tz_layout_read(int fd, struct tz_create *create);
int tz_layout_instantiate(int fd, uint64_t start, bool alone);
int tz_layout_replace_tail(int fd, struct tz_create *create, const struct tz_plan *plan, uint16_t from, bool alone);

#endif
