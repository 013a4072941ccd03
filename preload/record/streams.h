/*
 * Streams of followed descriptors: flushed at exit, since libc flushes only after the last exit handler. A stream is
 * taken off whenever it is closed, whatever its descriptor stands for by then.
 */
#pragma once

#include <stdio.h>

void tz_streams_add(FILE *stream);
void tz_streams_remove(FILE *stream);
void tz_streams_flush(void);
