/*
 * A planned file that someone else is just making. Its late components have lists until its maker has had their
 * objects made, or has replaced what an OST refused; a write into one of these would fail meanwhile. Who opens the file
 * to write therefore looks once, and waits only where an OST does refuse.
 */
#include "place/settle.h"
#include "base/clock.h"
#include "base/rawsys.h"
#include "place/layout_fd.h"
#include "process/config.h"

#include <stdlib.h>

enum { TRIES = 11, LOOKS = 9, YOUNG_S = 60 };

/* Changed within the last minute, as a file that processes race to create is. */
static bool is_young(int fd)
{
    struct tz_stat st;

    return tz_look(fd, &st) == 0 && llabs((long long)tz_about_now_s() - st.changed_s) < YOUNG_S;
}

static void pause_ms(unsigned ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};

    syscall(SYS_nanosleep, &pause, NULL);
}

void tz_place_wait(struct tz_create *c, int fd)
{
    for (int i = 0; i < LOOKS; i++) {
        pause_ms(1U << i);
        if (tz_layout_missing(fd) != ENODATA)
            return;
    }
    if (tz_scratch_need(&c->scratch))
        tz_mount_doubt(c->where.mount, tz_layout_set_default(fd, c->scratch));
}

static bool is_unsettled(enum tz_standing standing)
{
    return standing == TZ_OBJECTS_MISSING || standing == TZ_TAIL_MISSING;
}

void tz_place_settle(struct tz_create *c, const struct tz_plan *plan, enum tz_standing standing, int fd)
{
    if (!tz_layout_has_late_lists(&plan->layout) || !is_unsettled(standing) || !is_young(fd))
        return;
    for (int i = 0; i < TRIES; i++) {
        int rc = tz_layout_instantiate(fd, &plan->layout);

        if (!is_unsettled(tz_examine(c, plan, TZ_LISTS_ALL, fd)) || rc == EOPNOTSUPP || rc == ENOSYS || rc == EFBIG ||
            rc == EBADF)
            return;
        pause_ms(1U << i);
    }
    /* Not all who wait at the same moment. */
    pause_ms((unsigned)tz_config.ident.pid * 7919 % 32 * 25);
    tz_layout_instantiate(fd, &plan->layout);
    standing = tz_examine(c, plan, TZ_LISTS_ALL, fd);
    if (is_unsettled(standing)) /* whoever made the file is gone: what it has left undone */
        tz_fall_back(c, plan, standing, fd);
}
