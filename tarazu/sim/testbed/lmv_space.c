/* The MDT of a directory by what is free: weights, penalties and turns (lu_tgt_descs.c, lmv_obd.c of 2.17). What is
 * remembered of earlier choices is in the shared state, for each client.
 */
#include "lmv.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static struct tb_lmv *lmv_state(void)
{
    uint32_t client = tb_client();

    return &tb_state->lmv[client <= TB_MAX_MDT_CLIENTS ? client : 0];
}

static unsigned number(const char *name, unsigned otherwise)
{
    char text[64];

    return lmv_parameter(name, text, sizeof(text)) > 0 ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static bool usable(uint32_t mdt)
{
    /* One that is away counts as there until the client hears otherwise: its connection is not given up. */
    return !(tb_state->mdt[mdt].flags & (MDT_INACTIVE | MDT_NO_CREATE));
}

static uint64_t blocks_free(uint32_t mdt)
{
    const struct tb_mdt *of = &tb_state->mdt[mdt];
    uint64_t used = of->base + (of->directories > 0 ? 4096ull * (uint64_t)of->directories : 0);

    return (used >= of->total ? 0 : of->total - used) >> 16;
}

static uint64_t inodes_free(uint32_t mdt)
{
    const struct tb_mdt *of = &tb_state->mdt[mdt];
    int64_t made = of->directories + of->files;
    uint64_t used = of->files_base + (made > 0 ? (uint64_t)made : 0);

    return (used >= of->files_total ? 0 : of->files_total - used) >> 8;
}

struct qos {
    struct tb_lmv *lmv;
    uint64_t per_object[TB_MAX_MDTS], server_per_object;
    unsigned active;
};

static uint64_t decayed(uint64_t penalty, int64_t used, int64_t now, int64_t max_age)
{
    int64_t age = (now - used) >> 3;

    if (max_age <= 0 || age > 32 * max_age)
        return 0;
    return age > max_age ? penalty >> (age / max_age < 63 ? age / max_age : 63) : penalty;
}

/* Penalties, and whether all have about the same space; false: there is one MDT at most, or they have. */
static bool calculate(struct qos *qos)
{
    unsigned threshold = number("qos_threshold_rr", 5) * 256 / 100,
             wide = 256 - number("qos_prio_free", 90) * 256 / 100;
    uint64_t most = 0, least = UINT64_MAX, most_inodes = 0, least_inodes = UINT64_MAX, sum = 0, inodes_sum = 0;
    int64_t now = time(NULL), max_age = number("qos_maxage", 60);
    struct tb_lmv *lmv = qos->lmv;
    bool reset = lmv->same_space;

    qos->active = 0;
    for (uint32_t i = 0; i < tb_state->n_mdts; i++)
        qos->active += !(tb_state->mdt[i].flags & MDT_INACTIVE);
    if (qos->active < 2)
        return false;
    for (uint32_t i = 0; i < tb_state->n_mdts; i++) {
        uint64_t blocks = blocks_free(i), inodes = inodes_free(i);

        if ((tb_state->mdt[i].flags & MDT_INACTIVE) || !blocks)
            continue;
        sum += blocks;
        most = blocks > most ? blocks : most;
        least = blocks < least ? blocks : least;
        if (!inodes)
            continue;
        inodes_sum += inodes;
        most_inodes = inodes > most_inodes ? inodes : most_inodes;
        least_inodes = inodes < least_inodes ? inodes : least_inodes;
        /* doubled: all are on one server, which is not penalised against another */
        qos->per_object[i] = ((wide * blocks * inodes >> 9) / (qos->active - 1)) << 1;
        lmv->penalty[i] = reset ? 0 : decayed(lmv->penalty[i], lmv->used[i], now, max_age);
    }
    qos->server_per_object = (wide * sum * inodes_sum >> 8) / qos->active >> 1;
    lmv->server_penalty = reset ? 0 : decayed(lmv->server_penalty, lmv->server_used, now, max_age);
    lmv->same_space = most * (256 - threshold) / 256 < least && most_inodes * (256 - threshold) / 256 < least_inodes;
    return !lmv->same_space;
}

static uint64_t weight(const struct qos *qos, uint32_t mdt)
{
    uint64_t available = blocks_free(mdt) * inodes_free(mdt);
    uint64_t penalty = qos->lmv->penalty[mdt] + qos->lmv->server_penalty;

    return available < penalty ? 0 : available - penalty;
}

static void chosen(struct qos *qos, uint32_t mdt)
{
    struct tb_lmv *lmv = qos->lmv;

    lmv->used[mdt] = lmv->server_used = time(NULL);
    lmv->penalty[mdt] = (lmv->penalty[mdt] >> 1) + qos->per_object[mdt] * qos->active;
    lmv->server_penalty = (lmv->server_penalty >> 1) + qos->server_per_object;
    lmv->server_penalty -= lmv->server_penalty < qos->server_per_object ? lmv->server_penalty : qos->server_per_object;
    for (uint32_t i = 0; i < tb_state->n_mdts; i++)
        lmv->penalty[i] -= lmv->penalty[i] < qos->per_object[i] ? lmv->penalty[i] : qos->per_object[i];
}

/* By what is free, weighted at random; -EAGAIN where all are as full, or nobody is usable. */
static int by_weight(struct qos *qos, uint32_t parent, unsigned depth, bool rr)
{
    uint64_t total = 0, available = 0, of_parent = 0, seen = 0, drawn;
    unsigned count = 0;

    if (!calculate(qos))
        return -EAGAIN;
    for (uint32_t i = 0; i < tb_state->n_mdts; i++)
        if (usable(i)) {
            total += weight(qos, i);
            available += blocks_free(i) * inodes_free(i);
            count++;
        }
    if (count && usable(parent))
        of_parent = blocks_free(parent) * inodes_free(parent);
    if (!rr && count && of_parent && of_parent >= available * 16 / (count * (depth + 10)))
        return (int)parent;
    drawn = tb_random_below(total);
    for (uint32_t i = 0; i < tb_state->n_mdts; i++) {
        if (!usable(i))
            continue;
        seen += weight(qos, i);
        if (seen < drawn)
            continue;
        chosen(qos, i);
        return (int)i;
    }
    return -EAGAIN;
}

static int by_turns(struct tb_lmv *lmv, uint32_t parent)
{
    for (uint32_t i = 0; i < tb_state->n_mdts; i++) {
        uint32_t mdt = (i + lmv->rr_index) % tb_state->n_mdts;

        if (!usable(mdt))
            continue;
        lmv->rr_index = (mdt + 1) % tb_state->n_mdts;
        return (int)mdt;
    }
    return (int)parent;
}

int lmv_by_space(uint32_t parent, unsigned depth, bool rr, bool asked)
{
    struct qos qos = {.lmv = lmv_state()};
    int mdt;

    tb_lock();
    mdt = by_weight(&qos, parent, depth, rr);
    if (mdt == -EAGAIN) {
        if (qos.lmv->same_space && !rr && !asked && !(tb_state->mdt[parent].flags & MDT_NO_CREATE))
            mdt = (int)parent;
        else
            mdt = by_turns(qos.lmv, parent);
    }
    tb_unlock();
    return mdt;
}
