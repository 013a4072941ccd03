/*
 * Streams of followed descriptors: what they hold at exit still belongs to their files, since libc writes it only after
 * the last exit handler. A stream is taken off whenever it is closed, whatever its descriptor stands for by then.
 *
 * Nothing here writes, seeks or locks: an error of a write is the program's to see, and another thread may hold a
 * stream for ever.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

void tz_streams_add(FILE *stream);
void tz_streams_remove(FILE *stream);
void tz_streams_each(void (*call)(FILE *stream));

/* Where the program is in the file, with what is read ahead and what is not written yet; -1 when that is not known. */
int64_t tz_stream_position(FILE *stream, int fd);

/* Where the last byte will lie when libc has written what the stream holds; 0 when it holds nothing. */
uint64_t tz_stream_end(FILE *stream, int fd, uint64_t size);
