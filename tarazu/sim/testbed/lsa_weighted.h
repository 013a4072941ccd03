/* The weighted half of Lustre's allocator, and how either half takes a target. */
#ifndef LSA_WEIGHTED_H
#define LSA_WEIGHTED_H

#include "tb.h"

#define LSA_EMPTY 0xffffu

static inline void lsa_take(struct tb_comp *comp, unsigned *n, unsigned ost)
{
    comp->ost[*n] = ost;
    comp->oid[*n] = ++tb_state->ost[ost].next_oid;
    ++*n;
}

/* -EAGAIN: use round robin. */
int lsa_weighted(struct tb_layout *layout, unsigned index, unsigned wanted, unsigned least);

#endif
