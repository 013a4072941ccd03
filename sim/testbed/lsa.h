/* What the two halves of the allocator share. */
#ifndef LSA_H
#define LSA_H

#include "tb.h"

#define LSA_EMPTY 0xffffu

void lsa_take(struct tb_comp *comp, unsigned *n, unsigned ost);

/* -EAGAIN: use round robin. */
int lsa_weighted(struct tb_layout *layout, unsigned index, unsigned wanted, unsigned least);

#endif
