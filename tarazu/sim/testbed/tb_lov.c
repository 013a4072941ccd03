/* The testbed's codec of lustre.lov: lov_user_md_v1, v3 and SPECIFIC, and lov_comp_md_v1 around them. */
#include "tb_lov.h"

#include <errno.h>
#include <string.h>

static size_t md_size(uint32_t magic)
{
    switch (magic) {
    case LOV_USER_MAGIC_V1:
        return sizeof(struct lov_user_md_v1);
    case LOV_USER_MAGIC_V3:
    case LOV_USER_MAGIC_SPECIFIC:
        return sizeof(struct lov_user_md_v3);
    default:
        return 0;
    }
}

static int read_md(const char *data, size_t size, struct lov_part *part)
{
    struct lov_user_md_v3 md;
    size_t head;

    if (size < sizeof(struct lov_user_md_v1))
        return -EINVAL;
    memcpy(&md, data, sizeof(struct lov_user_md_v1));
    head = md_size(md.lmm_magic);
    if (head == 0 || size < head)
        return -EINVAL;
    memcpy(&md, data, head);
    if (head == sizeof(md))
        memcpy(part->pool, md.lmm_pool_name, LOV_MAXPOOLNAME);
    part->pattern = md.lmm_pattern;
    part->stripe_size = md.lmm_stripe_size;
    part->stripe_count = md.lmm_stripe_count;
    part->offset = md.lmm_stripe_offset;
    part->listed = md.lmm_magic == LOV_USER_MAGIC_SPECIFIC;
    part->objects = (size - head) / sizeof(*part->object);
    part->object = (const void *)(data + head);
    return part->listed && part->objects < part->stripe_count ? -EINVAL : 0;
}

int lov_read_head(const void *data, size_t size, struct lov_head *head)
{
    struct lov_comp_md_v1 comp;

    if (size < sizeof(comp))
        return -EINVAL;
    memcpy(&comp, data, sizeof(comp));
    *head = (struct lov_head){.entries = 1};
    if (comp.lcm_magic != LOV_USER_MAGIC_COMP_V1)
        return md_size(comp.lcm_magic) ? 0 : -EINVAL;
    *head = (struct lov_head){true, comp.lcm_layout_gen, comp.lcm_entry_count, comp.lcm_mirror_count};
    if (comp.lcm_size > size || comp.lcm_size < sizeof(comp) + head->entries * sizeof(comp.lcm_entries[0]))
        return -EINVAL;
    return 0;
}

int lov_read_part(const void *data, size_t size, unsigned i, struct lov_part *part)
{
    const struct lov_comp_md_v1 *comp = data;
    struct lov_comp_md_entry_v1 entry;
    struct lov_head head;
    int rc = lov_read_head(data, size, &head);

    if (rc || i >= head.entries)
        return -EINVAL;
    *part = (struct lov_part){.end = LUSTRE_EOF};
    if (!head.composite)
        return read_md(data, size, part);
    entry = comp->lcm_entries[i];
    if (entry.lcme_offset > comp->lcm_size || entry.lcme_size > comp->lcm_size - entry.lcme_offset)
        return -EINVAL;
    part->id = entry.lcme_id;
    part->flags = entry.lcme_flags;
    part->start = entry.lcme_extent.e_start;
    part->end = entry.lcme_extent.e_end;
    return read_md((const char *)data + entry.lcme_offset, entry.lcme_size, part);
}

size_t lov_passed_size(const void *data, bool answer)
{
    const struct lov_comp_md_v1 *comp = data;
    const struct lov_user_md_v1 *md = data;
    size_t size;

    if (comp->lcm_magic == LOV_USER_MAGIC_COMP_V1)
        return comp->lcm_size;
    size = md_size(md->lmm_magic) ? md_size(md->lmm_magic) : sizeof(*md);
    if (answer || md->lmm_magic == LOV_USER_MAGIC_SPECIFIC)
        size += md->lmm_stripe_count * sizeof(struct lov_user_ost_data_v1);
    return size;
}

void lov_hide_starts(void *data)
{
    struct lov_comp_md_v1 *comp = data;
    struct lov_user_md_v1 *md = data;

    if (comp->lcm_magic != LOV_USER_MAGIC_COMP_V1)
        md->lmm_stripe_offset = LOV_OFFSET_DEFAULT;
    else
        for (unsigned i = 0; i < comp->lcm_entry_count; i++) {
            md = (void *)((char *)data + comp->lcm_entries[i].lcme_offset);
            md->lmm_stripe_offset = LOV_OFFSET_DEFAULT;
        }
}

struct lov_writer lov_begin(const struct lov_head *head, void *out, size_t capacity)
{
    struct lov_writer writer = {.out = out, .capacity = capacity, .head = *head};

    if (head->composite)
        writer.size = sizeof(struct lov_comp_md_v1) + head->entries * sizeof(struct lov_comp_md_entry_v1);
    return writer;
}

struct lov_user_ost_data_v1 *lov_write(struct lov_writer *writer, const struct lov_part *part)
{
    uint32_t magic = part->listed ? LOV_USER_MAGIC_SPECIFIC : part->pool[0] ? LOV_USER_MAGIC_V3 : LOV_USER_MAGIC_V1;
    struct lov_user_md_v3 md = {.lmm_magic = magic,
                                .lmm_pattern = part->pattern,
                                .lmm_oi = part->oi,
                                .lmm_stripe_size = part->stripe_size,
                                .lmm_stripe_count = part->stripe_count,
                                .lmm_stripe_offset = part->offset};
    size_t at = writer->size, objects = part->objects * sizeof(*part->object), size = md_size(magic) + objects;
    struct lov_comp_md_v1 *comp = (void *)writer->out;

    writer->size += size;
    if (!writer->out || writer->size > writer->capacity)
        return NULL;
    if (writer->head.composite) {
        comp->lcm_entries[writer->written++] = (struct lov_comp_md_entry_v1){.lcme_id = part->id,
                                                                             .lcme_flags = part->flags,
                                                                             .lcme_extent = {part->start, part->end},
                                                                             .lcme_offset = at,
                                                                             .lcme_size = size};
        *comp = (struct lov_comp_md_v1){.lcm_magic = LOV_USER_MAGIC_COMP_V1,
                                        .lcm_size = writer->size,
                                        .lcm_layout_gen = writer->head.gen,
                                        .lcm_entry_count = writer->written};
    }
    memcpy(md.lmm_pool_name, part->pool, LOV_MAXPOOLNAME);
    memcpy(writer->out + at, &md, md_size(magic));
    return memset(writer->out + at + md_size(magic), 0, objects);
}

ssize_t lov_end(const struct lov_writer *writer)
{
    return writer->out && writer->size > writer->capacity ? -ERANGE : (ssize_t)writer->size;
}
