/* OST pools, as the testbed's Python side and its stand-in for lctl see them. */
#include "tb.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

void tb_targets_set(struct tb_rr *rr, const uint16_t *members, unsigned count)
{
    rr->count = count;
    rr->dirty = 1;
    rr->start_count = 0; /* the first allocation seeds it */
    rr->start_idx = rr->offset_idx = 0;
    memcpy(rr->members, members, count * sizeof(*members));
}

static struct tb_pool *find(const char *name)
{
    for (unsigned i = 0; i < tb_state->n_pools; i++)
        if (strcmp(tb_state->pool[i].name, name) == 0)
            return &tb_state->pool[i];
    return NULL;
}

static int place_of(const struct tb_pool *pool, uint32_t ost)
{
    for (unsigned i = 0; i < pool->rr.count; i++)
        if (pool->rr.members[i] == ost)
            return (int)i;
    return -1;
}

/* Lustre's `lod_spill_target_refresh`, which looks anew every `qos_maxage` seconds. */
static bool spills(const struct tb_pool *pool)
{
    uint64_t avail = 0, total = 0;

    for (unsigned i = 0; pool->spill_pct && i < pool->rr.count; i++) {
        const struct tb_ost *ost = &tb_state->ost[pool->rr.members[i]];

        if (ost->flags & OST_INACTIVE)
            continue;
        avail += tb_ost_avail(ost);
        total += ost->total;
    }
    return pool->spill_pct && total - avail >= total / 100 * pool->spill_pct;
}

/* The pool by whose name a component is made instead, also one that lists its OSTs (`lod_check_and_spill_pool`). */
void tb_spill(char *pool)
{
    const struct tb_pool *found;

    for (unsigned hops = 0; pool[0] && hops < TB_MAX_POOLS && (found = find(pool)) && spills(found); hops++)
        strcpy(pool, found->spill_target);
}

PUBLIC int testbed_pool_set_spill(const char *name, const char *target, uint32_t pct)
{
    struct tb_pool *pool;
    int rc = 0;

    if (strlen(target) > LOV_MAXPOOLNAME)
        return -ENAMETOOLONG;
    tb_lock();
    pool = find(name);
    if (!pool)
        rc = -ENOENT;
    else {
        strcpy(pool->spill_target, pct ? target : "");
        pool->spill_pct = pct;
    }
    tb_unlock();
    return rc;
}

/* Target (LOV_MAXPOOLNAME + 1 bytes) and threshold; 1 while it spills over, else 0. */
PUBLIC int testbed_pool_spill(const char *name, char *target, uint32_t *pct)
{
    struct tb_pool *pool;
    int rc = -ENOENT;

    tb_lock();
    pool = find(name);
    if (pool) {
        strcpy(target, pool->spill_target);
        *pct = pool->spill_pct;
        rc = spills(pool);
    }
    tb_unlock();
    return rc;
}

/* The errors of the four below are those of Lustre's MGS. */
PUBLIC int testbed_pool_new(const char *name)
{
    struct tb_pool *pool;
    int rc = 0;

    if (strlen(name) > LOV_MAXPOOLNAME)
        return -ENAMETOOLONG;
    tb_lock();
    if (find(name))
        rc = -EEXIST;
    else if (tb_state->n_pools == TB_MAX_POOLS)
        rc = -ENOSPC;
    else {
        pool = &tb_state->pool[tb_state->n_pools];
        memset(pool, 0, sizeof(*pool));
        strcpy(pool->name, name);
        pool->rr.dirty = 1;
        tb_state->n_pools++;
    }
    tb_unlock();
    return rc;
}

PUBLIC int testbed_pool_destroy(const char *name)
{
    struct tb_pool *pool;
    int rc = 0;

    tb_lock();
    pool = find(name);
    if (!pool)
        rc = -ENOENT;
    else if (pool->rr.count)
        rc = -ENOTEMPTY;
    else {
        tb_state->n_pools--;
        memmove(pool, pool + 1, (size_t)(&tb_state->pool[tb_state->n_pools] - pool) * sizeof(*pool));
    }
    tb_unlock();
    return rc;
}

PUBLIC int testbed_pool_add(const char *name, uint32_t ost)
{
    uint16_t members[TB_MAX_OSTS];
    struct tb_pool *pool;
    int rc = 0;

    tb_lock();
    pool = find(name);
    if (ost >= tb_state->n_osts)
        rc = -ENODEV;
    else if (!pool)
        rc = -ENOMEDIUM;
    else if (place_of(pool, ost) >= 0)
        rc = -EEXIST;
    else {
        memcpy(members, pool->rr.members, sizeof(members));
        members[pool->rr.count] = ost;
        tb_targets_set(&pool->rr, members, pool->rr.count + 1);
    }
    tb_unlock();
    return rc;
}

PUBLIC int testbed_pool_remove(const char *name, uint32_t ost)
{
    uint16_t members[TB_MAX_OSTS];
    struct tb_pool *pool;
    int at, rc = 0;

    tb_lock();
    pool = find(name);
    if (ost >= tb_state->n_osts)
        rc = -ENODEV;
    else if (!pool)
        rc = -ENOMEDIUM;
    else if ((at = place_of(pool, ost)) < 0)
        rc = -ENOENT;
    else {
        memcpy(members, pool->rr.members, sizeof(members));
        memmove(members + at, members + at + 1, (pool->rr.count - at - 1) * sizeof(*members));
        tb_targets_set(&pool->rr, members, pool->rr.count - 1);
    }
    tb_unlock();
    return rc;
}

/* The name (LOV_MAXPOOLNAME + 1 bytes) and members (TB_MAX_OSTS) of the pool with that number; how many they are, or
 * -ENOENT where there are no more pools. */
PUBLIC int testbed_pool_get(uint32_t number, char *name, uint16_t *members)
{
    int rc = -ENOENT;

    tb_lock();
    if (number < tb_state->n_pools) {
        strcpy(name, tb_state->pool[number].name);
        memcpy(members, tb_state->pool[number].rr.members, sizeof(uint16_t) * tb_state->pool[number].rr.count);
        rc = (int)tb_state->pool[number].rr.count;
    }
    tb_unlock();
    return rc;
}
