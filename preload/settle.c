/*
 * A planned file that someone else is just making. Its late components have lists until its maker has had their
 * objects made, or has replaced what an OST refused; a write into one of these would fail meanwhile. Who opens the file
 * to write therefore looks once, and waits only where an OST does refuse.
 */
#include "lov.h"
#include "place.h"

#include <stdlib.h>
#include <time.h>

enum { TRIES = 11, YOUNG_S = 60 };

/* The tail is missing: between its removal and the new one by the process that replaces it. */
static bool cut_short(const struct tz_create *c, const struct tz_plan *plan)
{
    struct tz_lov_entry last;
    struct tz_lov lov;

    return plan->layout.composite && tz_lov_check(c->scratch->lov, c->lov_length, &lov) == 0 &&
           lov.composite && lov.entries > 0 && lov.entries < plan->layout.count &&
           tz_lov_entry(c->scratch->lov, c->lov_length, lov.entries - 1, &last) == 0 &&
           last.end == plan->layout.components[lov.entries - 1].end;
}

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

/* Still to be waited for. What is said of the file is in c->outcome then, unless this open did not create. */
static bool unsettled(struct tz_create *c, const struct tz_plan *plan, enum tz_lov_verdict *verdict)
{
    uint16_t late;

    *verdict = tz_lov_compare(c->scratch->lov, c->lov_length, &plan->layout, plan->row.osts, TZ_LISTS_ALL, &late);
    return *verdict == TZ_LOV_LATE || (*verdict == TZ_LOV_OTHER && cut_short(c, plan));
}

/* Whoever made the file is gone: what it has left undone. */
static void abandoned(struct tz_create *c, const struct tz_plan *plan, int fd)
{
    struct tz_lov lov;
    uint16_t late = 0;

    if (cut_short(c, plan) && tz_lov_check(c->scratch->lov, c->lov_length, &lov) == 0) {
        c->refusal = (uint16_t)tz_layout_add_tail(fd, c, plan, lov.entries);
        tz_layout_instantiate(fd, &plan->layout);
        tz_layout_read(fd, c);
    } else if (tz_lov_compare(c->scratch->lov, c->lov_length, &plan->layout, plan->row.osts, TZ_LISTS_ALL, &late) ==
                   TZ_LOV_LATE &&
               late) {
        c->refusal = (uint16_t)tz_layout_replace_tail(fd, c, plan, late);
    }
    c->outcome = TZ_PARTLY;
}

void tz_place_settle(struct tz_create *c, const struct tz_plan *plan, int fd)
{
    enum tz_lov_verdict verdict;

    if (!tz_layout_has_late_lists(&plan->layout) || !unsettled(c, plan, &verdict) || !is_young(fd))
        return;
    for (int i = 0; i < TRIES; i++) {
        int rc = tz_layout_instantiate(fd, &plan->layout);

        if (tz_layout_read(fd, c))
            return;
        if (!unsettled(c, plan, &verdict)) {
            c->outcome = verdict == TZ_LOV_AS_ASKED ? TZ_HIT : TZ_RACED;
            return;
        }
        if (rc == EOPNOTSUPP || rc == ENOSYS || rc == EFBIG || rc == EBADF)
            return;
        pause_ms(1U << i);
    }
    /* Not all who wait at the same moment. */
    pause_ms((unsigned)tz_config.ident.pid * 7919 % 32 * 25);
    tz_layout_instantiate(fd, &plan->layout);
    if (tz_layout_read(fd, c) == 0 && unsettled(c, plan, &verdict))
        abandoned(c, plan, fd);
}
