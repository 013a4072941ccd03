/* Stand-in liblustreapi: the layout object and its components. */
#include "tb_llapi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int invalid(void)
{
    errno = EINVAL;
    return -1;
}

/* NULL with errno for a layout that is none. */
struct llapi_comp *llapi_current(const struct llapi_layout *layout)
{
    if (!layout || layout->magic != LLAPI_LAYOUT_MAGIC || layout->n_comps == 0) {
        errno = EINVAL;
        return NULL;
    }
    return (struct llapi_comp *)&layout->comp[layout->current];
}

static void init_comp(struct llapi_comp *comp)
{
    free(comp->objects);
    memset(comp, 0, sizeof(*comp));
    comp->end = LUSTRE_EOF;
    comp->pattern = comp->stripe_size = comp->stripe_count = comp->offset = LLAPI_LAYOUT_DEFAULT;
}

PUBLIC struct llapi_layout *llapi_layout_alloc(void)
{
    struct llapi_layout *layout = calloc(1, sizeof(*layout));

    if (!layout)
        return NULL;
    layout->magic = LLAPI_LAYOUT_MAGIC;
    layout->n_comps = 1;
    init_comp(&layout->comp[0]);
    return layout;
}

PUBLIC void llapi_layout_free(struct llapi_layout *layout)
{
    if (!layout)
        return;
    for (unsigned i = 0; i < LLAPI_MAX_COMPS; i++)
        free(layout->comp[i].objects);
    free(layout);
}

int llapi_objects(struct llapi_comp *comp, unsigned count)
{
    uint32_t *objects;

    if (count <= comp->n_objects)
        return 0;
    objects = realloc(comp->objects, count * sizeof(*objects));
    if (!objects)
        return -1;
    for (unsigned i = comp->n_objects; i < count; i++)
        objects[i] = LLAPI_LAYOUT_IDX_MAX;
    comp->objects = objects;
    comp->n_objects = count;
    return 0;
}

PUBLIC int llapi_layout_stripe_count_get(const struct llapi_layout *layout, uint64_t *count);
PUBLIC int llapi_layout_stripe_count_get(const struct llapi_layout *layout, uint64_t *count)
{
    const struct llapi_comp *comp = llapi_current(layout);

    if (!comp || !count)
        return invalid();
    *count = comp->stripe_count;
    return 0;
}

static bool is_stripe_count(uint64_t count)
{
    return count == LLAPI_LAYOUT_DEFAULT || (count >= LLAPI_LAYOUT_WIDE_MIN && count <= LLAPI_LAYOUT_WIDE_MAX) ||
           (count != 0 && count <= LOV_MAX_STRIPE_COUNT);
}

PUBLIC int llapi_layout_stripe_count_set(struct llapi_layout *layout, uint64_t count)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || !is_stripe_count(count))
        return invalid();
    comp->stripe_count = count;
    return 0;
}

PUBLIC int llapi_layout_stripe_size_set(struct llapi_layout *layout, uint64_t size)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || (comp->flags & LCME_FL_EXTENSION))
        return invalid();
    if (size != LLAPI_LAYOUT_DEFAULT && (size == 0 || size % LOV_MIN_STRIPE_SIZE || size >= 1ull << 32))
        return invalid();
    comp->stripe_size = size;
    return 0;
}

PUBLIC int llapi_layout_extension_size_set(struct llapi_layout *layout, uint64_t size)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || !(comp->flags & LCME_FL_EXTENSION) || size == 0 ||
        size % ((uint64_t)SEL_UNIT_SIZE * LOV_MIN_STRIPE_SIZE) || size / SEL_UNIT_SIZE >= 1ull << 32)
        return invalid();
    comp->stripe_size = size / SEL_UNIT_SIZE;
    return 0;
}

PUBLIC int llapi_layout_pattern_set(struct llapi_layout *layout, uint64_t pattern)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp)
        return -1;
    if (pattern != LLAPI_LAYOUT_DEFAULT && pattern != LLAPI_LAYOUT_RAID0 && pattern != LLAPI_LAYOUT_MDT &&
        pattern != LLAPI_LAYOUT_OVERSTRIPING) {
        errno = EOPNOTSUPP;
        return -1;
    }
    comp->pattern = pattern | (comp->pattern & LLAPI_LAYOUT_SPECIFIC);
    return 0;
}

PUBLIC int llapi_layout_ost_index_set(struct llapi_layout *layout, int stripe, uint64_t index)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp)
        return -1;
    if (stripe == 0 && index == LLAPI_LAYOUT_DEFAULT) {
        comp->offset = index;
        comp->pattern &= ~LLAPI_LAYOUT_SPECIFIC;
        return 0;
    }
    if (stripe < 0 || stripe >= (int)LOV_MAX_STRIPE_COUNT || index >= LLAPI_LAYOUT_IDX_MAX)
        return invalid();
    if (llapi_objects(comp, (unsigned)stripe + 1) != 0)
        return -1;
    comp->objects[stripe] = (uint32_t)index;
    if (stripe == 0)
        comp->offset = index;
    else
        comp->pattern |= LLAPI_LAYOUT_SPECIFIC; /* one index alone is only where to start */
    if (comp->stripe_count == LLAPI_LAYOUT_DEFAULT || comp->stripe_count <= (uint64_t)stripe)
        comp->stripe_count = (uint64_t)stripe + 1;
    return 0;
}

PUBLIC int llapi_layout_ost_index_get(const struct llapi_layout *layout, uint64_t stripe, uint64_t *index)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || !index || stripe >= comp->stripe_count || stripe >= comp->n_objects)
        return invalid();
    *index = comp->offset == LLAPI_LAYOUT_DEFAULT ? LLAPI_LAYOUT_DEFAULT : comp->objects[stripe];
    return 0;
}

/* A name may carry the file system in front: fs.pool. */
PUBLIC int llapi_layout_pool_name_set(struct llapi_layout *layout, const char *name)
{
    struct llapi_comp *comp = llapi_current(layout);
    const char *dot = name ? strchr(name, '.') : NULL;

    name = dot ? dot + 1 : name;
    if (!comp || !name || strlen(name) > LOV_MAXPOOLNAME)
        return invalid();
    memset(comp->pool, 0, sizeof(comp->pool));
    strcpy(comp->pool, name);
    return 0;
}

PUBLIC int llapi_layout_comp_extent_set(struct llapi_layout *layout, uint64_t start, uint64_t end)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || start > end)
        return invalid();
    comp->start = start;
    comp->end = end;
    layout->composite = true;
    return 0;
}

PUBLIC int llapi_layout_comp_flags_set(struct llapi_layout *layout, uint32_t flags)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp)
        return -1;
    comp->flags |= flags;
    return 0;
}

/* The new component becomes the current one; it begins where the last one ends. */
PUBLIC int llapi_layout_comp_add(struct llapi_layout *layout)
{
    struct llapi_comp *last, *added;

    if (!llapi_current(layout))
        return -1;
    last = &layout->comp[layout->n_comps - 1];
    if (!layout->composite || layout->n_comps == LLAPI_MAX_COMPS)
        return invalid();
    added = &layout->comp[layout->n_comps];
    init_comp(added);
    added->start = last->end;
    added->end = last->end;
    layout->current = layout->n_comps++;
    return 0;
}

/* `position`: 1 first, 2 last, 3 next, 4 previous. Returns 1 where there is none. */
PUBLIC int llapi_layout_comp_use(struct llapi_layout *layout, int position)
{
    if (!llapi_current(layout))
        return -1;
    if (position < 1 || position > 4)
        return invalid();
    if ((position == 3 && layout->current + 1 >= layout->n_comps) || (position == 4 && layout->current == 0)) {
        errno = ENOENT;
        return 1;
    }
    layout->current = position == 1   ? 0
                      : position == 2 ? layout->n_comps - 1
                      : position == 3 ? layout->current + 1
                                      : layout->current - 1;
    return 0;
}
