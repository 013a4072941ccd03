/* Operations on an open descriptor's layout, all 0 or an errno. */
#pragma once

#include "place/create.h"

int tz_layout_set(int fd, const struct tz_plan *plan, enum tz_request_lists lists, struct tz_scratch *scratch);
int tz_layout_set_default(int fd, struct tz_scratch *scratch);

/* Has the file a layout? ENODATA: none, so that a write to it fails. A look at what this client has: no request. */
int tz_layout_missing(int fd);

/* Into the scratch. */
int tz_layout_read(int fd, struct tz_create *create);

/* Creates the objects of late components, before anything is written. */
int tz_layout_instantiate(int fd, const struct tz_layout *layout);

/* The components from number `from` on, added behind those that the file has, or in place of those without objects. */
int tz_layout_add_tail(int fd, struct tz_create *create, const struct tz_plan *plan, uint16_t from);
int tz_layout_replace_tail(int fd, struct tz_create *create, const struct tz_plan *plan, uint16_t from);

/* The last component with an explicit list; NULL when there is none. */
const struct tz_component *tz_layout_last_list(const struct tz_layout *layout);

/* Does the layout have lists on components that are not made with the file? */
bool tz_layout_has_late_lists(const struct tz_layout *layout);

/* Can tz_layout_instantiate do anything for it, under this process's limits? */
bool tz_layout_can_instantiate(const struct tz_layout *layout);
