/* The MDS's layouts (struct tb_layout) as lustre.lov: what a user gives, what is stored, and what fgetxattr shows. */
#include "tb.h"

#include <errno.h>
#include <string.h>

static uint64_t object_sequence(unsigned ost)
{
    return ((uint64_t)(0x240 + 0x40 * (uint64_t)ost) << 24) + 0x400;
}

/* On OSTs; a component on the MDT has none. */
static bool has_objects(const struct tb_comp *comp)
{
    return (comp->flags & LCME_FL_INIT) && !(comp->pattern & LOV_PATTERN_MDT);
}

/* `stored`: written by us, so that objects follow when the component is instantiated. */
static int take(struct tb_comp *comp, const struct lov_part *part, bool stored)
{
    bool objects;

    comp->id = part->id;
    comp->flags = stored ? part->flags : part->flags & ~LCME_FL_INIT;
    comp->start = part->start;
    comp->end = part->end;
    comp->pattern = part->pattern ? part->pattern : LOV_PATTERN_RAID0;
    comp->stripe_size = part->stripe_size;
    comp->stripe_count = part->stripe_count;
    comp->hint = part->offset;
    memcpy(comp->pool, part->pool, sizeof(comp->pool));
    objects = part->listed || (stored && has_objects(comp));
    comp->n_list = objects && !stored ? part->stripe_count : 0;
    if (objects && (part->stripe_count > TB_MAX_STRIPES || part->stripe_count > part->objects))
        return -EINVAL;
    for (unsigned i = 0; objects && i < part->stripe_count; i++) {
        uint32_t index = part->object[i].l_ost_idx;

        if (stored) {
            comp->ost[i] = index;
            comp->oid[i] = part->object[i].l_ost_oi.oi_fid.f_oid;
        } else {
            comp->list[i] = index > LOV_OFFSET_DEFAULT ? LOV_OFFSET_DEFAULT : index;
        }
    }
    return 0;
}

/* -EINVAL for anything that is no blob. A file's plain layout is always instantiated. */
int blob_decode(const void *data, size_t size, struct tb_layout *layout, enum blob_of of)
{
    struct lov_head head;
    struct lov_part part;
    int rc = lov_read_head(data, size, &head);

    if (rc || head.entries == 0 || head.entries > TB_MAX_COMPS || head.mirrors != 0)
        return -EINVAL; /* mirrors exist in Lustre; the testbed has none */
    layout->composite = head.composite;
    layout->gen = head.gen;
    layout->n_comps = head.entries;
    for (unsigned i = 0; rc == 0 && i < head.entries; i++) {
        rc = lov_read_part(data, size, i, &part);
        if (!head.composite && of == BLOB_FILE)
            part.flags = LCME_FL_INIT;
        rc = rc ? rc : take(&layout->comp[i], &part, of != BLOB_USER);
    }
    return rc;
}

/* The list of a file's component that is not instantiated yet is kept by the MDS, but not shown; that of a directory's
 * default is. */
static void put(struct lov_writer *writer, const struct tb_layout *layout, const struct tb_comp *comp, bool file)
{
    bool objects = has_objects(comp), listed = !file && comp->n_list;
    struct lov_part part = {.start = comp->start,
                            .end = comp->end,
                            .id = file ? comp->id : 0,
                            .flags = comp->flags,
                            .pattern = comp->pattern,
                            .stripe_size = comp->stripe_size,
                            .stripe_count = comp->stripe_count,
                            .offset = !listed && (objects || comp->n_list) ? LOV_OFFSET_DEFAULT : comp->hint,
                            .listed = listed,
                            .objects = listed    ? comp->n_list
                                       : objects ? comp->stripe_count
                                                 : 0};
    struct lov_user_ost_data_v1 *object;

    memcpy(part.pool, comp->pool, sizeof(part.pool));
    if (!layout->composite)
        part.oi = (struct ost_id){.oi = {layout->file_oid, 0x200000401u}};
    object = lov_write(writer, &part);
    for (unsigned i = 0; object && i < part.objects; i++) {
        object[i].l_ost_idx = listed ? comp->list[i] : comp->ost[i];
        if (listed)
            continue;
        object[i].l_ost_oi.oi_fid = (struct lu_fid){.f_seq = object_sequence(comp->ost[i]), .f_oid = comp->oid[i]};
    }
}

/* What fgetxattr shows. Returns the length, also when `capacity` is 0; -ERANGE when it is too small.
 * `file`: false for the default of a directory, which has no objects and no component ids. */
ssize_t blob_encode(const struct tb_layout *layout, void *buffer, size_t capacity, bool file)
{
    struct lov_head head = {layout->composite, layout->gen, layout->n_comps, 0};
    struct lov_writer writer = lov_begin(&head, capacity ? buffer : NULL, capacity);

    for (unsigned i = 0; i < layout->n_comps; i++)
        put(&writer, layout, &layout->comp[i], file);
    return lov_end(&writer);
}
