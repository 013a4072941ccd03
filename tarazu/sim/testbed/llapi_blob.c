/* Stand-in liblustreapi: the layout object as lustre.lov, to set it and as it is read back. */
#include "tb_llapi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many OSTs are named: none unless the layout says that these are meant. */
static unsigned listed(const struct llapi_comp *comp)
{
    return comp->pattern != LLAPI_LAYOUT_DEFAULT && (comp->pattern & LLAPI_LAYOUT_SPECIFIC)
               ? (unsigned)comp->stripe_count
               : 0;
}

static uint32_t pattern_of(const struct llapi_comp *comp)
{
    uint64_t pattern = comp->pattern == LLAPI_LAYOUT_DEFAULT ? LLAPI_LAYOUT_RAID0 : comp->pattern;

    pattern &= ~LLAPI_LAYOUT_SPECIFIC;
    return pattern == LLAPI_LAYOUT_MDT            ? LOV_PATTERN_MDT
           : pattern == LLAPI_LAYOUT_OVERSTRIPING ? LOV_PATTERN_RAID0 | LOV_PATTERN_OVERSTRIPING
                                                  : LOV_PATTERN_RAID0;
}

static uint16_t stripes_of(const struct llapi_comp *comp)
{
    if (comp->stripe_count == LLAPI_LAYOUT_DEFAULT)
        return 0;
    if (comp->stripe_count >= LLAPI_LAYOUT_WIDE_MIN && comp->stripe_count <= LLAPI_LAYOUT_WIDE_MAX)
        return LOV_ALL_STRIPES - (comp->stripe_count - LLAPI_LAYOUT_WIDE_MIN);
    return comp->stripe_count;
}

static int put(struct lov_writer *writer, const struct llapi_comp *comp)
{
    struct lov_part part = {.start = comp->start,
                            .end = comp->end,
                            .id = comp->id,
                            .flags = comp->flags,
                            .pattern = pattern_of(comp),
                            .stripe_size = comp->stripe_size == LLAPI_LAYOUT_DEFAULT ? 0 : comp->stripe_size,
                            .stripe_count = stripes_of(comp),
                            .offset = comp->offset == LLAPI_LAYOUT_DEFAULT ? LOV_OFFSET_DEFAULT : comp->offset,
                            .listed = listed(comp) > 0,
                            .objects = listed(comp)};
    struct lov_user_ost_data_v1 *object;

    memcpy(part.pool, comp->pool, sizeof(part.pool));
    object = lov_write(writer, &part);
    for (unsigned i = 0; object && i < part.objects; i++) {
        if (i >= comp->n_objects || comp->objects[i] == LLAPI_LAYOUT_IDX_MAX)
            return -1; /* a list must name every stripe */
        object[i].l_ost_idx = comp->objects[i];
    }
    return 0;
}

/* malloc'ed; NULL with errno. */
void *llapi_to_lum(const struct llapi_layout *layout, ssize_t *size)
{
    struct lov_head head = {.composite = layout->composite, .entries = layout->composite ? layout->n_comps : 1};
    void *lum = malloc(XATTR_SIZE_MAX);
    struct lov_writer writer = lov_begin(&head, lum, XATTR_SIZE_MAX);
    int rc = 0;

    for (unsigned i = 0; lum && rc == 0 && i < head.entries; i++)
        rc = put(&writer, &layout->comp[i]);
    *size = lov_end(&writer);
    if (lum && rc == 0 && *size > 0)
        return lum;
    free(lum);
    errno = lum ? EINVAL : ENOMEM;
    return NULL;
}

static int take(struct llapi_comp *comp, const struct lov_part *part)
{
    const unsigned kind = part->pattern & ~LOV_PATTERN_RAID0;

    comp->id = part->id;
    comp->flags = part->flags;
    comp->start = part->start;
    comp->end = part->end;
    memcpy(comp->pool, part->pool, sizeof(comp->pool));
    comp->pattern = kind == LOV_PATTERN_MDT            ? LLAPI_LAYOUT_MDT
                    : kind == LOV_PATTERN_OVERSTRIPING ? LLAPI_LAYOUT_OVERSTRIPING
                                                       : LLAPI_LAYOUT_RAID0;
    comp->stripe_size = part->stripe_size ? part->stripe_size : LLAPI_LAYOUT_DEFAULT;
    comp->stripe_count = part->stripe_count;
    if (part->stripe_count >= LOV_ALL_STRIPES_WIDE)
        comp->stripe_count = LLAPI_LAYOUT_WIDE_MIN + (LOV_ALL_STRIPES - part->stripe_count);
    else if (part->stripe_count == 0 && kind != LOV_PATTERN_MDT)
        comp->stripe_count = LLAPI_LAYOUT_DEFAULT;
    if (llapi_objects(comp, part->objects) != 0)
        return -1;
    for (unsigned i = 0; i < part->objects; i++)
        comp->objects[i] = part->object[i].l_ost_idx;
    comp->offset = part->objects                        ? comp->objects[0]
                   : part->offset == LOV_OFFSET_DEFAULT ? LLAPI_LAYOUT_DEFAULT
                                                        : part->offset;
    return 0;
}

struct llapi_layout *llapi_layout_get_by_xattr(void *xattr, ssize_t size, int flags)
{
    struct llapi_layout *layout = llapi_layout_alloc();
    struct lov_head head;
    struct lov_part part;
    int rc;

    (void)flags;
    if (!layout)
        return NULL;
    rc = xattr && size > 0 ? lov_read_head(xattr, (size_t)size, &head) : -1;
    if (rc || head.entries == 0 || head.entries > LLAPI_MAX_COMPS)
        rc = -1;
    else
        layout->composite = head.composite;
    for (unsigned i = 0; rc == 0 && i < head.entries; i++) {
        layout->n_comps = i + 1;
        rc = lov_read_part(xattr, (size_t)size, i, &part) ? -1 : take(&layout->comp[i], &part);
    }
    if (rc == 0)
        return layout;
    llapi_layout_free(layout);
    errno = EINVAL;
    return NULL;
}
