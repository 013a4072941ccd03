/* Operations on an open descriptor's layout, all 0 or an errno. */
#pragma once

#include "place/create.h"

/* Needs the right to write the file, not a descriptor that can. A layout that is there already stays: no error. */
int tz_layout_set(int fd, const struct tz_plan *plan, enum tz_request_lists lists, struct tz_scratch *scratch);

/*
 * The same for a regular file that has none yet, as far as this client knows. `named`: a descriptor with O_PATH, which
 * is no open file: to close one drops no record lock of the process.
 */
void tz_layout_offer(int named, const struct tz_plan *plan, enum tz_request_lists lists, struct tz_scratch *scratch);

/* Has the file a layout? ENODATA: none. A look at what this client has: no request. */
int tz_layout_missing(int fd);

/* Into the scratch. */
int tz_layout_read(int fd, struct tz_create *create);

/* Creates the objects of late components, before anything is written. */
int tz_layout_instantiate(int fd, const struct tz_layout *layout);

/* Takes away the last components, those that have no objects when the MDS does it: what others have written stays. */
int tz_layout_delete_late(int fd, struct tz_scratch *scratch);

/*
 * Adds the plan's components from number `from` or a later one on, whichever follows what the file has, with start
 * hints, which fall back to other OSTs by themselves. EINVAL: nothing is missing.
 */
int tz_layout_add_tail(int fd, struct tz_scratch *scratch, const struct tz_plan *plan, uint16_t from);

/* The last component with an explicit list; NULL when there is none. */
const struct tz_component *tz_layout_last_list(const struct tz_layout *layout);

/* Does the layout have lists on components that are not made with the file? */
bool tz_layout_has_late_lists(const struct tz_layout *layout);

/* Can tz_layout_instantiate do anything for it, under this process's limits? */
bool tz_layout_can_instantiate(const struct tz_layout *layout);
