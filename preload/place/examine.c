/* Comparing a file's layout with the plan, and giving up what of it cannot be had. */
#include "place/examine.h"
#include "core/lov.h"
#include "place/layout_fd.h"

/* Between the removal of the last components and the new ones by the process that replaces them. */
static bool is_cut_short(struct tz_create *c, const struct tz_plan *plan)
{
    struct tz_lov_entry last;
    struct tz_lov lov;

    if (!plan->layout.composite || tz_lov_check(c->scratch->lov, c->lov_length, &lov) || lov.odd || !lov.composite ||
        lov.entries == 0 || lov.entries >= plan->layout.count ||
        tz_lov_entry(c->scratch->lov, c->lov_length, lov.entries - 1, &last) ||
        last.end != plan->layout.components[lov.entries - 1].end)
        return false;
    c->late = lov.entries;
    return true;
}

enum tz_standing tz_examine(struct tz_create *c, const struct tz_plan *plan, enum tz_request_lists lists, int fd)
{
    int rc = tz_layout_read(fd, c);
    enum tz_lov_verdict verdict;

    if (rc)
        return rc == ENODATA ? TZ_NO_LAYOUT : TZ_UNREADABLE;
    verdict = tz_lov_compare(c->scratch->lov, c->lov_length, &plan->layout, plan->row.osts, lists, &c->late);
    c->outcome = verdict == TZ_LOV_OTHER ? TZ_RACED : TZ_HIT;
    if (verdict == TZ_LOV_OTHER)
        return is_cut_short(c, plan) ? TZ_TAIL_MISSING : TZ_OTHERS_LAYOUT;
    return verdict == TZ_LOV_LATE ? TZ_OBJECTS_MISSING : TZ_AS_ASKED;
}
