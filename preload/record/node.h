/*
 * What all recorded processes of a job step share on one node: how much memory their spools may take, how many records
 * found no room, and the files that processes only opened (docs/formats.md, "Node file").
 */
#pragma once

#include "record/record.h"

/* Takes `bytes` of what spools may use on this node; false when there is no more, or nothing can be shared here. */
bool tz_node_reserve(uint64_t bytes);
void tz_node_release(uint64_t bytes);

/* Counts records that were not written. */
void tz_node_lost(uint64_t records);

/* Counts a file that was opened to be made while all was stopped; in the node file as soon as something else makes it.
 */
void tz_node_passed_over(void);

/*
 * Notes a record that gets no spool of its own, above all of a file that this process has not made: once for each rank
 * of the node and file, whatever the number of processes and opens. A later close only changes size and time, a later
 * making the outcome and time. False: there is no room.
 */
bool tz_node_note(const struct tz_record *record);

void tz_node_forked(void);
