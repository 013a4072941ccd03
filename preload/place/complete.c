/*
 * Late components have lists of OSTs until their objects are made, and where a listed OST refuses, a write into them
 * fails. So whoever has opened a planned file to write goes on only when it is complete: each component has its
 * objects, there or elsewhere. What has objects the MDS takes away from nobody; so several may do this at once, without
 * waiting for one another: one that takes away what another has just added adds it again.
 */
#include "place/complete.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/rawsys.h"
#include "core/lov.h"
#include "place/examine.h"
#include "place/layout_fd.h"

#include <stdlib.h>

enum { TRIES = 32, YOUNG_S = 60 };

/* As read: reaches as far as planned, and the components up to the last with a list have their objects. */
static bool is_complete(const struct tz_create *c, const struct tz_layout *layout)
{
    const struct tz_component *listed = tz_layout_last_list(layout);
    struct tz_lov_entry e = {0};
    struct tz_lov lov;

    if (tz_lov_check(c->scratch->lov, c->lov_length, &lov))
        return true; /* another's, of which nothing is known */
    for (uint32_t i = 0; i < lov.entries; i++) {
        if (tz_lov_entry(c->scratch->lov, c->lov_length, i, &e))
            return true;
        if (listed && e.start <= listed->start && !(e.flags & LCME_FL_INIT))
            return false;
    }
    return e.end >= layout->components[layout->count - 1].end;
}

static void give_up_lists(struct tz_create *c, const struct tz_plan *plan, int fd)
{
    int rc;

    c->outcome = TZ_PARTLY;
    tz_layout_delete_late(fd, c->scratch);
    rc = tz_layout_add_tail(fd, c->scratch, plan, c->late);
    if (rc != EINVAL) /* there is one again */
        c->refusal = (uint16_t)rc;
}

/* 0, or the errno by which no objects can be made ahead here. */
static int complete(struct tz_create *c, const struct tz_plan *plan, int fd)
{
    int rc = 0;

    for (int i = 0; i < TRIES; i++) {
        rc = tz_layout_instantiate(fd, &plan->layout);
        if (rc == EOPNOTSUPP || rc == ENOSYS || rc == EFBIG || rc == EBADF)
            return rc;
        if (tz_layout_read(fd, c) || is_complete(c, &plan->layout))
            return 0;
        give_up_lists(c, plan, fd);
    }
    return 0;
}

static bool is_late(const struct tz_create *c, enum tz_standing standing)
{
    /* The first component has its objects, or the file could not be written to. */
    return c->late > 0 && (standing == TZ_OBJECTS_MISSING || standing == TZ_TAIL_MISSING);
}

bool tz_complete_own(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int fd)
{
    enum tz_standing standing = tz_examine(c, plan, lists, fd);
    int rc;

    if (!is_late(c, standing))
        return true;
    rc = complete(c, plan, fd);
    if (rc)
        give_up_lists(c, plan, fd);
    if (c->outcome == TZ_PARTLY)
        tz_layout_read(fd, c);
    else
        tz_examine(c, plan, lists, fd);
    return rc != EOPNOTSUPP && rc != ENOSYS;
}

/* Changed within the last minute, as a file that processes race to create is. */
static bool is_young(int fd)
{
    struct tz_stat st;

    return tz_look(fd, &st) == 0 && llabs((long long)tz_about_now_s() - st.changed_s) < YOUNG_S;
}

bool tz_complete_others(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int fd)
{
    enum tz_standing standing = tz_examine(c, plan, lists, fd);
    int cancels;

    if (is_late(c, standing) && is_young(fd)) {
        cancels = tz_cancels_hold();
        complete(c, plan, fd);
        tz_cancels_allow(cancels);
    }
    return standing != TZ_UNREADABLE;
}
