/* The weighted half of Lustre's allocator: random by free space, with penalties for targets and servers just used. */
#include "lsa_weighted.h"

#include <errno.h>
#include <time.h>

#define QOS_MAXAGE_S 5
#define LOOK_S (2 * QOS_MAXAGE_S) /* `lod_qos_statfs_update` */

/* Lustre counts those out that refuse objects (`lod_statfs_and_check`). */
static bool active(const struct tb_ost *ost)
{
    return tb_ost_refuses(ost) == 0;
}

static unsigned count_active(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < tb_state->n_osts; i++)
        count += active(&tb_state->ost[i]);
    return count;
}

static void decay(uint64_t *penalty, int64_t last_used, int64_t now, bool reset)
{
    int64_t age = (now - last_used) >> 3;

    if (reset || age > 32 * QOS_MAXAGE_S)
        *penalty = 0;
    else if (age > QOS_MAXAGE_S)
        *penalty >>= age / QOS_MAXAGE_S;
}

static void server_penalties(unsigned wide, int64_t now)
{
    uint64_t others = tb_state->active_osss > 1 ? tb_state->active_osss - 1 : 1;

    for (unsigned s = 0; s < tb_state->n_osss; s++) {
        struct tb_oss *oss = &tb_state->oss[s];

        if (oss->targets == 0)
            continue;
        oss->penalty_per_obj = ((wide * oss->avail >> 8) / (oss->targets * others)) >> 1;
        decay(&oss->penalty, oss->last_used, now, tb_state->qos_reset);
    }
}

/* Recomputes penalties and decides which mode holds; true = free space is alike, so round robin. */
static bool same_space(void)
{
    unsigned wide = 256 - tb_state->prio_free, targets = count_active();
    uint64_t least = UINT64_MAX, most = 0;
    int64_t now = time(NULL);

    if (now - tb_state->qos_looked >= LOOK_S) {
        tb_state->qos_dirty |= tb_state->qos_changed;
        tb_state->qos_changed = 0;
        tb_state->qos_looked = now;
    }
    if (!tb_state->qos_dirty)
        return tb_state->qos_same_space;
    if (targets < 2)
        return true;
    for (unsigned s = 0; s < tb_state->n_osss; s++)
        tb_state->oss[s].avail = 0;
    tb_state->active_osss = 0;
    for (unsigned i = 0; i < tb_state->n_osts; i++) {
        struct tb_ost *ost = &tb_state->ost[i];
        struct tb_oss *oss = &tb_state->oss[ost->oss];
        uint64_t avail = tb_ost_avail(ost) >> 8;

        if (!active(ost) || avail == 0)
            continue;
        least = avail < least ? avail : least;
        most = avail > most ? avail : most;
        tb_state->active_osss += oss->avail == 0;
        oss->avail += avail;
        ost->penalty_per_obj = (wide * avail >> 9) / (targets - 1);
        decay(&ost->penalty, ost->last_used, now, tb_state->qos_reset);
    }
    if (tb_state->active_osss < 2)
        for (unsigned i = 0; i < tb_state->n_osts; i++)
            tb_state->ost[i].penalty_per_obj <<= active(&tb_state->ost[i]);
    server_penalties(wide, now);
    tb_state->qos_same_space = most * (256 - tb_state->threshold_rr) / 256 < least;
    tb_state->qos_reset = tb_state->qos_same_space;
    tb_state->qos_dirty = 0;
    return tb_state->qos_same_space;
}

/* The simpler rule for a pool (since 2.16): only its targets' space and age. */
static bool pool_same_space(const struct tb_rr *rr)
{
    unsigned wide = 256 - tb_state->prio_free;
    uint64_t least = UINT64_MAX, most = 0;
    int64_t now = time(NULL);

    if (rr == &tb_state->rr)
        return same_space();
    if (rr->count < 2)
        return true;
    for (unsigned i = 0; i < rr->count; i++) {
        struct tb_ost *ost = &tb_state->ost[rr->members[i]];
        uint64_t avail = tb_ost_avail(ost) >> 8;

        if (avail == 0 || !active(ost))
            continue;
        least = avail < least ? avail : least;
        most = avail > most ? avail : most;
        tb_state->oss[ost->oss].avail += avail; /* as Lustre does, until all targets are looked at again */
        ost->penalty_per_obj = (wide * avail >> 9) / (rr->count - 1);
        decay(&ost->penalty, ost->last_used, now, false);
    }
    return (most * (256 - tb_state->threshold_rr)) >> 8 < least;
}

static void weigh(struct tb_ost *ost)
{
    uint64_t avail = tb_ost_avail(ost) >> 8, penalty = ost->penalty + tb_state->oss[ost->oss].penalty;

    ost->weighed = avail;
    ost->weight = avail < penalty ? 0 : avail - penalty;
}

/* After a target was chosen: it and its server get the greatest penalty, everyone else's shrinks by one object. */
static uint64_t chosen(struct tb_ost *ost)
{
    struct tb_oss *oss = &tb_state->oss[ost->oss];
    uint64_t total = 0;

    ost->usable = 0;
    ost->penalty = (ost->penalty >> 1) + ost->penalty_per_obj * count_active();
    oss->penalty = (oss->penalty >> 1) + oss->penalty_per_obj * tb_state->active_osss;
    ost->last_used = oss->last_used = time(NULL);
    for (unsigned s = 0; s < tb_state->n_osss; s++) {
        struct tb_oss *each = &tb_state->oss[s];

        each->penalty = each->penalty < each->penalty_per_obj ? 0 : each->penalty - each->penalty_per_obj;
    }
    for (unsigned i = 0; i < tb_state->n_osts; i++) {
        struct tb_ost *each = &tb_state->ost[i];

        if (!active(each))
            continue;
        each->penalty = each->penalty < each->penalty_per_obj ? 0 : each->penalty - each->penalty_per_obj;
        weigh(each);
        total += each->usable ? each->weight : 0;
    }
    return total;
}

static unsigned weighted_draw(struct tb_rr *rr, uint64_t total)
{
    uint64_t threshold = tb_random_below(total), sum = 0;

    for (unsigned i = 0; i < rr->count; i++) {
        struct tb_ost *ost = &tb_state->ost[rr->members[i]];

        if (!ost->usable)
            continue;
        sum += ost->weight;
        if (sum >= threshold)
            return rr->members[i];
    }
    return LSA_EMPTY;
}

int lsa_weighted(struct tb_layout *layout, unsigned index, unsigned wanted, unsigned least)
{
    struct tb_comp *comp = &layout->comp[index];
    struct tb_rr *rr = tb_targets(comp->pool);
    unsigned n = 0, good = 0, per_ost = 1;
    uint64_t total = 0;

    if (tb_state->threshold_rr >= 256 || pool_same_space(rr))
        return -EAGAIN;
    if (comp->pattern & LOV_PATTERN_OVERSTRIPING)
        per_ost = (wanted - 1) / rr->count + 1;
    for (unsigned i = 0; i < tb_state->n_osts; i++)
        tb_state->ost[i].usable = 0;
    for (unsigned i = 0; i < rr->count; i++) {
        struct tb_ost *ost = &tb_state->ost[rr->members[i]];

        if (tb_ost_refuses(ost) || (ost->flags & OST_DEGRADED))
            continue;
        ost->usable = 1;
        weigh(ost);
        total += ost->weight;
        good++;
    }
    if (good < least || good == 0)
        return -EAGAIN;
    if (wanted / per_ost > good)
        wanted = good * per_ost;
    while (n < wanted) {
        unsigned ost = weighted_draw(rr, total);

        if (ost == LSA_EMPTY)
            break;
        lsa_take(comp, &n, ost);
        total = chosen(&tb_state->ost[ost]);
    }
    if (n < least) {
        tb_state->qos_dirty = 1;
        return -EAGAIN;
    }
    comp->stripe_count = n;
    return 0;
}
