/* Lustre's standard allocator: round robin over an interleaved order of the targets while their free space is alike,
 * weighted random by free space with penalties for targets and servers just used otherwise. Called under the lock. */
#include "lsa_weighted.h"

#include <errno.h>
#include <string.h>

#define RESEED_MULT 30
#define RESEED_MIN 2000

static bool used_here(const struct tb_comp *comp, unsigned n, unsigned ost)
{
    for (unsigned i = 0; i < n; i++)
        if (comp->ost[i] == ost)
            return true;
    return false;
}

static bool used_elsewhere(const struct tb_layout *layout, unsigned index, unsigned ost)
{
    for (unsigned c = 0; c < layout->n_comps; c++)
        if (c != index && (layout->comp[c].flags & LCME_FL_INIT) &&
            used_here(&layout->comp[c], layout->comp[c].stripe_count, ost))
            return true;
    return false;
}

/* Interleave the servers: the targets of each are spread evenly over the order, servers one after another. */
static void round_robin_order(struct tb_rr *rr)
{
    for (unsigned i = 0; i < rr->count; i++)
        rr->order[i] = LSA_EMPTY;
    for (unsigned s = 0; s < tb_state->n_osss; s++) {
        unsigned oss = tb_state->oss_order[s], j = 0;

        for (unsigned i = 0; i < rr->count; i++) {
            unsigned at;

            if (tb_state->ost[rr->members[i]].oss != oss)
                continue;
            at = j++ * rr->count / tb_state->oss[oss].targets;
            while (rr->order[at] != LSA_EMPTY)
                at = (at + 1) % rr->count;
            rr->order[at] = rr->members[i];
        }
    }
    rr->dirty = 0;
}

/* `pass` as in Lustre: 0 avoids targets of other components, 0 and 1 avoid degraded ones. */
static void try_target(struct tb_layout *layout, unsigned index, unsigned ost, int pass, unsigned *n)
{
    struct tb_comp *comp = &layout->comp[index];
    const struct tb_ost *target = &tb_state->ost[ost];

    if (tb_ost_refuses(target) || ((target->flags & OST_DEGRADED) && pass < 2))
        return;
    if (pass == 0 && used_elsewhere(layout, index, ost))
        return;
    if (used_here(comp, *n, ost) && !(comp->pattern & LOV_PATTERN_OVERSTRIPING))
        return;
    lsa_take(comp, n, ost);
}

static int allocate_round_robin(struct tb_layout *layout, unsigned index, unsigned wanted, unsigned least)
{
    struct tb_comp *comp = &layout->comp[index];
    struct tb_rr *rr = tb_targets(comp->pool);
    unsigned n = 0, per_ost = 1, idx = 0;

    if (rr->count == 0)
        return -ENOSPC;
    if (rr->dirty)
        round_robin_order(rr);
    if (--rr->start_count <= 0) {
        rr->start_idx = tb_random_below(rr->count);
        rr->start_count = (RESEED_MIN / rr->count + RESEED_MULT) * rr->count;
    } else if (rr->start_idx >= rr->count) {
        rr->start_idx -= rr->count;
        if (wanted > 1 && rr->count % wanted != 1)
            rr->offset_idx++; /* precess, unless the counts already make it do so */
    }
    if (comp->pattern & LOV_PATTERN_OVERSTRIPING)
        per_ost = (wanted - 1) / rr->count + 1;
    for (int pass = 0; pass < 3; pass++) {
        for (unsigned i = 0; i < rr->count * per_ost && n < wanted; i++) {
            idx = pass < 2 || i == 0 ? ++rr->start_idx + rr->offset_idx : idx + 1;
            try_target(layout, index, rr->order[idx % rr->count], pass, &n);
        }
        if (n >= least)
            break;
    }
    comp->stripe_count = n;
    return n ? 0 : -ENOSPC;
}

/* An explicit list: every target must accept, in the order given (rotated to begin at the start index). */
static int allocate_list(struct tb_comp *comp)
{
    unsigned n = 0, first = 0;

    if (comp->hint != LOV_OFFSET_DEFAULT)
        while (first < comp->n_list && comp->list[first] != comp->hint)
            first++;
    if (first == comp->n_list)
        return -EINVAL;
    for (unsigned i = 0; i < comp->n_list; i++) {
        unsigned ost = comp->list[(first + i) % comp->n_list];
        int refused;

        if (ost >= tb_state->n_osts)
            return -EINVAL;
        if (used_here(comp, n, ost) && !(comp->pattern & LOV_PATTERN_OVERSTRIPING))
            return -EINVAL;
        refused = tb_ost_refuses(&tb_state->ost[ost]);
        if (refused)
            return -refused;
        lsa_take(comp, &n, ost);
    }
    comp->stripe_count = n;
    return 0;
}

/* A start index only: that target first if it accepts, then upwards; -EAGAIN = the index is no target here. */
static int allocate_from(struct tb_layout *layout, unsigned index, unsigned wanted)
{
    struct tb_comp *comp = &layout->comp[index];
    struct tb_rr *rr = tb_targets(comp->pool);
    unsigned n = 0, at = 0, per_ost = 1;

    while (at < rr->count && rr->members[at] != comp->hint)
        at++;
    if (at == rr->count)
        return -EAGAIN;
    if (comp->pattern & LOV_PATTERN_OVERSTRIPING)
        per_ost = (wanted - 1) / rr->count + 1;
    if (wanted > rr->count * per_ost)
        wanted = rr->count * per_ost;
    for (int pass = 0; pass < 3 && n < wanted; pass++)
        for (unsigned i = 0; i < rr->count * per_ost && n < wanted; i++) {
            unsigned ost = rr->members[(at + i) % rr->count];

            if (used_here(comp, n, ost) && !(comp->pattern & LOV_PATTERN_OVERSTRIPING))
                continue;
            if ((pass == 0 && i != 0 && used_elsewhere(layout, index, ost)) || tb_ost_refuses(&tb_state->ost[ost]))
                continue;
            lsa_take(comp, &n, ost);
        }
    comp->stripe_count = n;
    return n == wanted ? 0 : n ? -EFBIG : -ENOSPC;
}

/* With enough targets a component that asked for overstriping is not overstriped; its pattern then says so. */
static void note_overstriping(struct tb_comp *comp)
{
    for (unsigned i = 1; i < comp->stripe_count; i++)
        if (used_here(comp, i, comp->ost[i]))
            return;
    comp->pattern &= ~LOV_PATTERN_OVERSTRIPING;
}

int lsa_allocate(struct tb_layout *layout, unsigned index, bool default_layout)
{
    struct tb_comp *comp = &layout->comp[index];
    unsigned targets = 0, wanted = comp->stripe_count, least;
    struct tb_rr *rr;
    int rc;

    if (comp->pattern & LOV_PATTERN_MDT)
        return 0;
    tb_spill(comp->pool);
    rr = tb_targets(comp->pool);
    for (unsigned i = 0; i < rr->count; i++)
        targets += !(tb_state->ost[rr->members[i]].flags & OST_INACTIVE);
    if (wanted == 0)
        wanted = tb_state->default_stripe_count;
    if (wanted >= LOV_ALL_STRIPES_WIDE) /* -1: one stripe on each, -2 and below: so many on each */
        wanted = targets * (LOV_ALL_STRIPES - wanted + 1);
    if (wanted > targets && comp->n_list == 0 && !(comp->pattern & LOV_PATTERN_OVERSTRIPING)) {
        wanted = targets;
        default_layout = true;
    }
    if (wanted > TB_MAX_STRIPES)
        wanted = TB_MAX_STRIPES;
    least = default_layout ? wanted - wanted / 4 : wanted;
    if (comp->n_list)
        return allocate_list(comp);
    rc = comp->hint == LOV_OFFSET_DEFAULT ? -EAGAIN : allocate_from(layout, index, wanted);
    if (rc == -EAGAIN)
        rc = lsa_weighted(layout, index, wanted, least);
    if (rc == -EAGAIN)
        rc = allocate_round_robin(layout, index, wanted, least);
    if (rc == 0)
        note_overstriping(comp);
    return rc;
}
