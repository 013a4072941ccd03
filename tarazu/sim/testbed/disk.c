/* Disks that take time: each OST's takes one request after another, each its own cost and its bytes at the disk's rate.
 * Whoever writes waits until his are done, as with O_DIRECT; so a job's time here is time that has really passed. */
#include "tb.h"

#include <errno.h>
#include <time.h>

enum { RPC_BYTES = 4 << 20, NS = 1000000000 };

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS + now.tv_nsec;
}

/* The disk's next free time is taken; returns when it will be done. */
static int64_t reserve(struct tb_ost *ost, uint64_t bytes)
{
    int64_t begin = now_ns(), until = ost->disk_until;

    if (!ost->disk_rate || !bytes)
        return 0;
    if (until > begin)
        begin = until;
    begin += (int64_t)((bytes + RPC_BYTES - 1) / RPC_BYTES * tb_state->disk_request_ns);
    begin += (int64_t)((double)bytes / (double)ost->disk_rate * NS);
    ost->disk_until = begin;
    return begin;
}

static int64_t reserve_all(const struct tb_layout *layout, uint64_t from, uint64_t to)
{
    int64_t last = 0;

    for (unsigned c = 0; c < layout->n_comps; c++) {
        const struct tb_comp *comp = &layout->comp[c];
        uint64_t start = comp->start > from ? comp->start : from, end = comp->end < to ? comp->end : to;

        if (start >= end || !(comp->flags & LCME_FL_INIT) || (comp->pattern & LOV_PATTERN_MDT) || !comp->stripe_count)
            continue;
        for (unsigned s = 0; s < comp->stripe_count; s++) {
            uint64_t bytes = layout_bytes_below(end, comp, s) - layout_bytes_below(start, comp, s);
            int64_t done = reserve(&tb_state->ost[comp->ost[s]], bytes);

            last = done > last ? done : last;
        }
    }
    return last;
}

/* Before data are written there. */
void disk_wait(int fd, uint64_t from, uint64_t to)
{
    struct tb_layout *layout = layout_scratch(0);
    struct timespec until;
    int saved = errno;
    int64_t last = 0;

    if (!tb_state->disk_request_ns)
        return;
    tb_lock();
    if (sidecar_load(fd, layout) == 0)
        last = reserve_all(layout, from, to);
    tb_unlock();
    until = (struct timespec){.tv_sec = last / NS, .tv_nsec = last % NS};
    while (last && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
    errno = saved;
}
