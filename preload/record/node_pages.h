/*
 * The node file, mapped in pieces as it grows: 256 KiB, and what lies behind them in pieces that are each as long as
 * all before. A piece that is mapped stays; an entry lies in one of them.
 */
#pragma once

#include "tz.h"

#define TZ_NODE_NAME "node.tzs"

enum { TZ_NODE_LONGEST = 1 << 26 };

/* The first piece of the file that is open at `fd`, NULL where it cannot be mapped. Called under the node's lock. */
void *tz_node_begin(int fd);

/* It is no node file: not mapped any more. */
void tz_node_not(void);

/* Memory of [place, place + length); NULL where that lies in no one piece, or the piece cannot be mapped. */
void *tz_node_at(uint64_t place, size_t length);

/* The first place from `place` on where `length` bytes, 256 KiB at most, lie in one piece. */
uint64_t tz_node_whole(uint64_t place, size_t length);
