/* Stand-in liblustreapi: the layout object and its components. */
#include "llapi.h"

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
    comp->end = LLAPI_EOF;
    comp->pattern = comp->stripe_size = comp->stripe_count = comp->offset = LLAPI_DEFAULT;
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
        objects[i] = LLAPI_IDX_MAX;
    comp->objects = objects;
    comp->n_objects = count;
    return 0;
}

#define GETTER(name, type, expression)                                                                                 \
    PUBLIC int name(const struct llapi_layout *layout, type *value)                                                    \
    {                                                                                                                  \
        struct llapi_comp *comp = llapi_current(layout);                                                               \
                                                                                                                       \
        if (!comp || !value)                                                                                           \
            return invalid();                                                                                          \
        *value = expression;                                                                                           \
        return 0;                                                                                                      \
    }

GETTER(llapi_layout_stripe_count_get, uint64_t, comp->stripe_count)
GETTER(llapi_layout_stripe_size_get, uint64_t, comp->stripe_size)
GETTER(llapi_layout_extension_size_get, uint64_t, comp->stripe_size * 1024)
GETTER(llapi_layout_pattern_get, uint64_t, comp->pattern)
GETTER(llapi_layout_comp_flags_get, uint32_t, comp->flags)
GETTER(llapi_layout_comp_id_get, uint32_t, comp->id)
GETTER(llapi_layout_mirror_id_get, uint32_t, (comp->id >> 16) & 0x7fff)
GETTER(llapi_layout_flags_get, uint32_t, layout->flags)
GETTER(llapi_layout_mirror_count_get, uint16_t, 1)

PUBLIC bool llapi_layout_stripe_count_is_valid(int64_t count)
{
    uint64_t value = (uint64_t)count;

    return value == LLAPI_DEFAULT || (value >= LLAPI_WIDE_MIN && value <= LLAPI_WIDE_MAX) ||
           (value != 0 && value <= LLAPI_MAX_STRIPES);
}

PUBLIC int llapi_layout_stripe_count_set(struct llapi_layout *layout, uint64_t count)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || !llapi_layout_stripe_count_is_valid((int64_t)count))
        return invalid();
    comp->stripe_count = count;
    return 0;
}

PUBLIC int llapi_layout_stripe_size_set(struct llapi_layout *layout, uint64_t size)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || (comp->flags & LCME_EXTENSION))
        return invalid();
    if (size != LLAPI_DEFAULT && (size == 0 || size % 65536 || size >= 1ull << 32))
        return invalid();
    comp->stripe_size = size;
    return 0;
}

PUBLIC int llapi_layout_extension_size_set(struct llapi_layout *layout, uint64_t size)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || !(comp->flags & LCME_EXTENSION) || size < 64u << 20 || size % 1024 || size / 1024 >= 1ull << 32)
        return invalid();
    comp->stripe_size = size / 1024;
    return 0;
}

PUBLIC int llapi_layout_pattern_set(struct llapi_layout *layout, uint64_t pattern)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp)
        return -1;
    if (pattern != LLAPI_DEFAULT && pattern != LLAPI_RAID0 && pattern != LLAPI_MDT && pattern != LLAPI_OVERSTRIPING) {
        errno = EOPNOTSUPP;
        return -1;
    }
    comp->pattern = pattern | (comp->pattern & LLAPI_SPECIFIC);
    return 0;
}

PUBLIC int llapi_layout_ost_index_set(struct llapi_layout *layout, int stripe, uint64_t index)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp)
        return -1;
    if (stripe == 0 && index == LLAPI_DEFAULT) {
        comp->offset = index;
        comp->pattern &= ~LLAPI_SPECIFIC;
        return 0;
    }
    if (stripe < 0 || stripe >= LLAPI_MAX_STRIPES || index >= LLAPI_IDX_MAX)
        return invalid();
    if (llapi_objects(comp, (unsigned)stripe + 1) != 0)
        return -1;
    comp->objects[stripe] = (uint32_t)index;
    if (stripe == 0)
        comp->offset = index;
    else
        comp->pattern |= LLAPI_SPECIFIC; /* one index alone is only where to start */
    if (comp->stripe_count == LLAPI_DEFAULT || comp->stripe_count <= (uint64_t)stripe)
        comp->stripe_count = (uint64_t)stripe + 1;
    return 0;
}

PUBLIC int llapi_layout_ost_index_get(const struct llapi_layout *layout, uint64_t stripe, uint64_t *index)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || !index || stripe >= comp->stripe_count || stripe >= comp->n_objects)
        return invalid();
    *index = comp->offset == LLAPI_DEFAULT ? LLAPI_DEFAULT : comp->objects[stripe];
    return 0;
}

PUBLIC int llapi_layout_ost_index_reset(struct llapi_layout *layout)
{
    if (!llapi_current(layout))
        return -1;
    for (unsigned i = 0; i < layout->n_comps; i++) {
        layout->comp[i].offset = LLAPI_DEFAULT;
        layout->comp[i].pattern &= ~LLAPI_SPECIFIC;
    }
    return 0;
}

PUBLIC int llapi_layout_pool_name_get(const struct llapi_layout *layout, char *name, size_t size)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || !name)
        return invalid();
    snprintf(name, size, "%s", comp->pool);
    return 0;
}

/* A name may carry the file system in front: fs.pool. */
PUBLIC int llapi_layout_pool_name_set(struct llapi_layout *layout, const char *name)
{
    struct llapi_comp *comp = llapi_current(layout);
    const char *dot = name ? strchr(name, '.') : NULL;

    name = dot ? dot + 1 : name;
    if (!comp || !name || strlen(name) >= LLAPI_POOL)
        return invalid();
    memset(comp->pool, 0, sizeof(comp->pool));
    strcpy(comp->pool, name);
    return 0;
}

PUBLIC int llapi_layout_comp_extent_get(const struct llapi_layout *layout, uint64_t *start, uint64_t *end)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp || !start || !end)
        return invalid();
    *start = comp->start;
    *end = comp->end;
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

PUBLIC int llapi_layout_comp_flags_clear(struct llapi_layout *layout, uint32_t flags)
{
    struct llapi_comp *comp = llapi_current(layout);

    if (!comp)
        return -1;
    comp->flags &= ~flags;
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

PUBLIC int llapi_layout_comp_del(struct llapi_layout *layout)
{
    if (!llapi_current(layout))
        return -1;
    if (!layout->composite || layout->n_comps < 2 || layout->current != layout->n_comps - 1)
        return invalid();
    layout->current = --layout->n_comps - 1;
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

PUBLIC int llapi_layout_comp_use_id(struct llapi_layout *layout, uint32_t id)
{
    if (!llapi_current(layout) || !layout->composite || id == 0)
        return invalid();
    for (unsigned i = 0; i < layout->n_comps; i++)
        if (layout->comp[i].id == id) {
            layout->current = i;
            return 0;
        }
    errno = ENOENT;
    return -1;
}

PUBLIC bool llapi_layout_is_composite(struct llapi_layout *layout)
{
    return layout->composite;
}

PUBLIC int llapi_layout_comp_iterate(struct llapi_layout *layout, int (*each)(struct llapi_layout *, void *),
                                     void *data)
{
    int rc = llapi_layout_comp_use(layout, 1);

    while (rc == 0) {
        rc = each(layout, data);
        if (rc != 0)
            return rc;
        rc = llapi_layout_comp_use(layout, 3);
    }
    return rc < 0 ? rc : 0;
}

PUBLIC int llapi_layout_dom_size(struct llapi_layout *layout, uint64_t *size)
{
    bool dom = layout && layout->composite && (layout->comp[0].pattern & ~LLAPI_SPECIFIC) == LLAPI_MDT;

    *size = dom ? layout->comp[0].end : 0;
    return 0;
}
