/* What makes a layout acceptable to the MDS, and what it fills in. */
#include "tb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool in_pool(const char *pool, unsigned ost)
{
    const struct tb_rr *rr = tb_targets(pool);

    for (unsigned i = 0; i < rr->count; i++)
        if (rr->members[i] == ost)
            return true;
    return false;
}

static int check_extents(const struct tb_layout *layout, uint64_t expected_start)
{
    for (unsigned i = 0; i < layout->n_comps; i++) {
        const struct tb_comp *comp = &layout->comp[i];

        if (comp->start > comp->end || comp->start % LOV_MIN_STRIPE_SIZE ||
            (comp->end != LUSTRE_EOF && comp->end % LOV_MIN_STRIPE_SIZE))
            return -EINVAL;
        if (comp->start != expected_start)
            return -EINVAL;
        if (comp->start == comp->end && !(i + 1 < layout->n_comps && (layout->comp[i + 1].flags & LCME_FL_EXTENSION)))
            return -EINVAL;
        if (comp->end != LUSTRE_EOF && comp->start != comp->end && comp->stripe_size && comp->end % comp->stripe_size)
            return -EINVAL;
        expected_start = comp->end;
    }
    return 0;
}

/* An index inside a list that the file system does not have brings a real MDS down; as the first it is EINVAL. */
static int check_indices(const struct tb_comp *comp)
{
    if (comp->hint != LOV_OFFSET_DEFAULT && !(comp->pattern & LOV_PATTERN_MDT) && comp->hint >= tb_state->n_osts)
        return -EINVAL;
    if (comp->n_list && comp->list[0] >= tb_state->n_osts)
        return -EINVAL;
    for (unsigned i = 1; i < comp->n_list; i++)
        if (comp->list[i] >= tb_state->n_osts) {
            char text[96];

            snprintf(text, sizeof(text), "a list names OST %u, the file system has %u\n", comp->list[i],
                     tb_state->n_osts);
            tb_crash(text);
            return -EIO;
        }
    return 0;
}

int layout_check(struct tb_layout *layout, uint64_t expected_start, const char *inherited_pool)
{
    int rc = check_extents(layout, expected_start);

    for (unsigned i = 0; rc == 0 && i < layout->n_comps; i++) {
        struct tb_comp *comp = &layout->comp[i];
        uint32_t base = comp->pattern & ~LOV_PATTERN_OVERSTRIPING;

        if (base != LOV_PATTERN_RAID0 && comp->pattern != LOV_PATTERN_MDT)
            return -EINVAL;
        if ((comp->pattern & LOV_PATTERN_MDT) && (comp->stripe_count || i != 0))
            return -EINVAL;
        if (comp->stripe_size % LOV_MIN_STRIPE_SIZE && !(comp->flags & LCME_FL_EXTENSION))
            return -EINVAL;
        if (comp->stripe_count > TB_MAX_STRIPES && comp->stripe_count < LOV_ALL_STRIPES_WIDE)
            return -EINVAL;
        rc = check_indices(comp);
        if (comp->pool[0] == 0 && inherited_pool)
            memcpy(comp->pool, inherited_pool, sizeof(comp->pool));
        for (unsigned l = 0; rc == 0 && comp->pool[0] && l < comp->n_list; l++)
            if (!in_pool(comp->pool, comp->list[l]))
                memset(comp->pool, 0, sizeof(comp->pool)); /* a list outside the pool loses the pool */
    }
    return rc;
}

void layout_fill_defaults(struct tb_layout *layout)
{
    for (unsigned i = 0; i < layout->n_comps; i++) {
        struct tb_comp *comp = &layout->comp[i];
        uint64_t length = comp->end - comp->start;

        if (comp->stripe_size == 0)
            comp->stripe_size = tb_state->default_stripe_size;
        if (comp->stripe_count == 0 && !(comp->pattern & LOV_PATTERN_MDT))
            comp->stripe_count = tb_state->default_stripe_count;
        if (layout->composite && !(comp->flags & LCME_FL_EXTENSION) && comp->end != LUSTRE_EOF && length &&
            !comp->n_list && comp->stripe_count < LOV_ALL_STRIPES_WIDE &&
            (uint64_t)comp->stripe_count * comp->stripe_size > length)
            comp->stripe_count = (length + comp->stripe_size - 1) / comp->stripe_size;
        if (layout->composite)
            comp->id = i + 1;
    }
}

int layout_may_change(const struct stat *st)
{
    uid_t uid = geteuid();
    mode_t bit = uid == st->st_uid ? S_IWUSR : getegid() == st->st_gid ? S_IWGRP : S_IWOTH;

    return uid == 0 || (st->st_mode & bit) ? 0 : -EACCES;
}
