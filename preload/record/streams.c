/* The table of streams, without locks. */
#include "record/streams.h"
#include "tz.h"

enum { STREAMS = 1024 };

static FILE *streams[STREAMS]; /* atomic pointers */
static uint32_t used;          /* atomic: no stream lies beyond */

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

void tz_streams_flush(void)
{
    for (uint32_t i = 0, n = tz_load(&used); i < n; i++) {
        FILE *stream = tz_load(&streams[i]);

        /* Another thread may hold it for ever. */
        if (stream && ftrylockfile(stream) == 0) {
            fflush_unlocked(stream);
            funlockfile(stream);
        }
    }
}
