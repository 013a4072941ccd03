/* The table of streams, and what a stream holds, without locks. */
#include "record/streams.h"
#include "base/rawsys.h"

#include <stdio_ext.h>

enum { STREAMS = 1024 };

TZ_LARGE static FILE *streams[STREAMS]; /* atomic pointers */
static uint32_t used;                   /* atomic: no stream lies beyond */

void tz_streams_add(FILE *stream)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        FILE *expected = NULL;
        uint32_t before;

        if (tz_relaxed(&streams[i]) ||
            !__atomic_compare_exchange_n(&streams[i], &expected, stream, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        before = tz_load(&used);
        while (before <= i &&
               !__atomic_compare_exchange_n(&used, &before, i + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            ;
        return;
    }
}

void tz_streams_remove(FILE *stream)
{
    for (uint32_t i = 0, n = tz_load(&used); i < n; i++)
        if (tz_relaxed(&streams[i]) == stream)
            tz_store(&streams[i], NULL);
}

void tz_streams_each(void (*call)(FILE *stream))
{
    for (uint32_t i = 0, n = tz_load(&used); i < n; i++) {
        FILE *stream = tz_load(&streams[i]);

        if (stream)
            call(stream);
    }
}

/* What libc has read ahead of the program, or of what it is about to write. */
static int64_t ahead(const FILE *stream, bool writing)
{
    const char *at = writing ? stream->_IO_write_base : stream->_IO_read_ptr;

    return at && stream->_IO_read_end > at ? stream->_IO_read_end - at : 0;
}

/* In characters for a wide stream: as many bytes as long as the text is ASCII. */
static uint64_t held(FILE *stream)
{
    size_t count = __fpending(stream);

    return count <= __fbufsize(stream) ? count : 0; /* another thread is at it */
}

int64_t tz_stream_position(FILE *stream, int fd)
{
    uint64_t count = held(stream);
    int64_t at = syscall(SYS_lseek, fd, 0, SEEK_CUR);

    return at < 0 ? -1 : at - ahead(stream, count > 0) + (int64_t)count;
}

uint64_t tz_stream_end(FILE *stream, int fd, uint64_t size)
{
    uint64_t count = held(stream);
    int64_t at;

    if (count == 0)
        return 0;
    if (syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND)
        return size + count;
    at = tz_stream_position(stream, fd);
    return at < 0 ? 0 : (uint64_t)at;
}
