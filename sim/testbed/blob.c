/* lustre.lov blobs: lov_user_md_v1, v3 and SPECIFIC, and lov_comp_md_v1 around them. Little-endian, packed. */
#include "tb.h"

#include <errno.h>
#include <string.h>

struct ost_entry {
    uint64_t seq;
    uint32_t oid, version, generation, index;
} __attribute__((packed));

struct plain_head {
    uint32_t magic, pattern;
    uint64_t oid, seq;
    uint32_t stripe_size;
    uint16_t stripe_count, offset;
} __attribute__((packed));

struct comp_head {
    uint32_t magic, size, gen;
    uint16_t flags, entries, mirrors;
    uint8_t padding[14];
} __attribute__((packed));

struct comp_entry {
    uint32_t id, flags;
    uint64_t start, end;
    uint32_t offset, size, gen;
    uint64_t time_and_id;
    uint8_t padding[4];
} __attribute__((packed));

_Static_assert(sizeof(struct ost_entry) == 24 && sizeof(struct plain_head) == 32, "lov_user_md");
_Static_assert(sizeof(struct comp_head) == 32 && sizeof(struct comp_entry) == 48, "lov_comp_md");

static uint64_t object_sequence(unsigned ost)
{
    return ((uint64_t)(0x240 + 0x40 * (uint64_t)ost) << 24) + 0x400;
}

/* One lov_user_md. `stored`: written by us, so that objects follow when the component is instantiated. */
static int decode_plain(const char *data, size_t size, struct tb_comp *comp, bool stored)
{
    struct plain_head head;
    size_t at = sizeof(head);
    unsigned objects = 0;

    if (size < sizeof(head))
        return -EINVAL;
    memcpy(&head, data, sizeof(head));
    if (head.magic != MAGIC_V1 && head.magic != MAGIC_V3 && head.magic != MAGIC_SPECIFIC)
        return -EINVAL;
    memset(comp->pool, 0, POOL_NAME);
    if (head.magic != MAGIC_V1) {
        if (size < at + POOL_NAME)
            return -EINVAL;
        memcpy(comp->pool, data + at, POOL_NAME - 1);
        at += POOL_NAME;
    }
    comp->pattern = head.pattern ? head.pattern : PATTERN_RAID0;
    comp->stripe_size = head.stripe_size;
    comp->stripe_count = head.stripe_count;
    comp->hint = head.offset;
    comp->n_list = 0;
    if (head.magic == MAGIC_SPECIFIC || (stored && (comp->flags & FL_INIT) && !(comp->pattern & PATTERN_MDT)))
        objects = head.stripe_count;
    if (objects > TB_MAX_STRIPES || size < at + objects * sizeof(struct ost_entry))
        return -EINVAL;
    for (unsigned i = 0; i < objects; i++) {
        struct ost_entry entry;

        memcpy(&entry, data + at + i * sizeof(entry), sizeof(entry));
        if (stored) {
            comp->ost[i] = entry.index;
            comp->oid[i] = entry.oid;
        } else {
            comp->list[i] = entry.index > TB_NO_OST ? TB_NO_OST : entry.index;
        }
    }
    comp->n_list = stored ? 0 : objects;
    return 0;
}

static int decode_composite(const char *data, size_t size, struct tb_layout *layout, bool stored)
{
    struct comp_head head;

    if (size < sizeof(head))
        return -EINVAL;
    memcpy(&head, data, sizeof(head));
    if (head.size > size || head.entries == 0 || head.entries > TB_MAX_COMPS || head.mirrors != 0 ||
        head.size < sizeof(head) + head.entries * sizeof(struct comp_entry))
        return -EINVAL; /* mirrors exist in Lustre; the testbed has none */
    layout->composite = 1;
    layout->gen = head.gen;
    layout->n_comps = head.entries;
    for (unsigned i = 0; i < head.entries; i++) {
        struct tb_comp *comp = &layout->comp[i];
        struct comp_entry entry;
        int rc;

        memcpy(&entry, data + sizeof(head) + i * sizeof(entry), sizeof(entry));
        if (entry.offset > head.size || entry.size > head.size - entry.offset)
            return -EINVAL;
        comp->id = entry.id;
        comp->flags = stored ? entry.flags : entry.flags & ~FL_INIT;
        comp->start = entry.start;
        comp->end = entry.end;
        rc = decode_plain(data + entry.offset, entry.size, comp, stored);
        if (rc)
            return rc;
    }
    return 0;
}

/* -EINVAL for anything that is no blob. A file's plain layout is always instantiated. */
int blob_decode(const void *data, size_t size, struct tb_layout *layout, enum blob_of of)
{
    uint32_t magic;

    if (size < sizeof(magic))
        return -EINVAL;
    memcpy(&magic, data, sizeof(magic));
    if (magic == MAGIC_COMP_V1)
        return decode_composite(data, size, layout, of != BLOB_USER);
    layout->composite = 0;
    layout->gen = 0;
    layout->n_comps = 1;
    layout->comp[0].start = 0;
    layout->comp[0].end = TB_EOF;
    layout->comp[0].id = 0;
    layout->comp[0].flags = of == BLOB_FILE ? FL_INIT : 0;
    return decode_plain(data, size, &layout->comp[0], of != BLOB_USER);
}

static size_t plain_size(const struct tb_comp *comp)
{
    size_t size = sizeof(struct plain_head) + (comp->pool[0] ? POOL_NAME : 0);

    if ((comp->flags & FL_INIT) && !(comp->pattern & PATTERN_MDT))
        size += comp->stripe_count * sizeof(struct ost_entry);
    return size;
}

/* The list of a component that is not instantiated yet is kept by the MDS, but not shown. */
static void encode_plain(const struct tb_layout *layout, const struct tb_comp *comp, char *out)
{
    bool objects = (comp->flags & FL_INIT) && !(comp->pattern & PATTERN_MDT);
    struct plain_head head = {
        .magic = comp->pool[0] ? MAGIC_V3 : MAGIC_V1,
        .pattern = comp->pattern,
        .oid = layout->composite ? 0 : layout->file_oid,
        .seq = layout->composite ? 0 : 0x200000401u,
        .stripe_size = comp->stripe_size,
        .stripe_count = comp->stripe_count,
        .offset = objects || comp->n_list ? TB_NO_OST : comp->hint,
    };

    memcpy(out, &head, sizeof(head));
    out += sizeof(head);
    if (comp->pool[0]) {
        memcpy(out, comp->pool, POOL_NAME);
        out += POOL_NAME;
    }
    for (unsigned i = 0; objects && i < comp->stripe_count; i++) {
        struct ost_entry entry = {.seq = object_sequence(comp->ost[i]), .oid = comp->oid[i], .index = comp->ost[i]};

        memcpy(out + i * sizeof(entry), &entry, sizeof(entry));
    }
}

/* What fgetxattr shows. Returns the length, also when `capacity` is 0; -ERANGE when it is too small.
 * `file`: false for the default of a directory, which has no objects and no component ids. */
ssize_t blob_encode(const struct tb_layout *layout, void *buffer, size_t capacity, bool file)
{
    size_t size = layout->composite ? sizeof(struct comp_head) + layout->n_comps * sizeof(struct comp_entry) : 0;
    size_t at = size;
    struct comp_head head = {.magic = MAGIC_COMP_V1, .gen = layout->gen, .entries = layout->n_comps};

    for (unsigned i = 0; i < layout->n_comps; i++)
        size += plain_size(&layout->comp[i]);
    if (capacity == 0)
        return size;
    if (capacity < size)
        return -ERANGE;
    if (!layout->composite) {
        encode_plain(layout, &layout->comp[0], buffer);
        return size;
    }
    head.size = size;
    memcpy(buffer, &head, sizeof(head));
    for (unsigned i = 0; i < layout->n_comps; i++) {
        const struct tb_comp *comp = &layout->comp[i];
        struct comp_entry entry = {.id = file ? comp->id : 0,
                                   .flags = comp->flags,
                                   .start = comp->start,
                                   .end = comp->end,
                                   .offset = at,
                                   .size = plain_size(comp)};

        memcpy((char *)buffer + sizeof(head) + i * sizeof(entry), &entry, sizeof(entry));
        encode_plain(layout, comp, (char *)buffer + at);
        at += entry.size;
    }
    return size;
}
