/* Placement: whether a file gets a layout of ours, and giving it one without ever making the open fail. */
#ifndef TZ_PLACE_H
#define TZ_PLACE_H

#include "map.h"
#include "record.h"

struct tz_plan {
    struct tz_row row;
    struct tz_layout layout;
};

/*
 * The map to look names up in; NULL with the outcome of a create that has none. It stays mapped until the scratch is
 * put back.
 */
const struct tz_map *tz_current_map(const struct tz_create *create, uint8_t *outcome);

/* Looks the name up and fills the outcome; true when the file is to be placed by `plan`. */
bool tz_place_decide(struct tz_create *create, struct tz_plan *plan);

/* The open call of the application, with other flags. */
int tz_call_open(const struct tz_call *call, int flags);

/* Opens and places. What it returns, and errno, are what the application's own call would have given. */
int tz_place_open(struct tz_create *create, const struct tz_plan *plan);

/*
 * A file that this open has not created is open for writing at `fd`. When it is a planned one whose maker is still
 * making its late components' objects, waits for that (see tz_place_settle).
 */
void tz_place_opened(struct tz_create *create, int fd);

/* Waits, for a second at most, until each late component of a new file has objects or falls back by itself. */
void tz_place_settle(struct tz_create *create, const struct tz_plan *plan, int fd);

/* The process's umask changed. */
void tz_umask_set(mode_t mask);

/* The first open through liblustreapi; -1 with errno, ENOSYS when the library cannot be used. */
int tz_llapi_open(const struct tz_create *create, const struct tz_plan *plan, enum tz_request_lists lists, int flags);

/* Operations on a descriptor, all 0 or an errno. */
int tz_layout_set(int fd, const struct tz_plan *plan, enum tz_request_lists lists, struct tz_scratch *scratch);
int tz_layout_set_default(int fd, struct tz_scratch *scratch);
int tz_layout_read(int fd, struct tz_create *create);
int tz_layout_instantiate(int fd, const struct tz_layout *layout);
int tz_layout_add_tail(int fd, struct tz_create *create, const struct tz_plan *plan, uint16_t from);
int tz_layout_replace_tail(int fd, struct tz_create *create, const struct tz_plan *plan, uint16_t from);

/* Does the layout have lists on components that are not made with the file? */
bool tz_layout_has_late_lists(const struct tz_layout *layout);

/* Can tz_layout_instantiate do anything for it, under this process's limits? */
bool tz_layout_can_instantiate(const struct tz_layout *layout);

#endif
