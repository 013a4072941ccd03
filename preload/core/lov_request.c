/* Layouts that are asked for: from a map's components and OSTs to a lustre.lov blob, and back to a verdict. */
#include "core/lov_request.h"
#include "core/lov.h"

/* The MDS takes the overstriping bit off where no OST came twice. */
#define PATTERN_ASKED (~(LOV_PATTERN_F_MASK | LOV_PATTERN_OVERSTRIPING))

struct part {
    struct lov_comp_md_entry_v1 entry;
    struct lov_user_md_v3 md;
    const uint16_t *osts; /* explicit list, as long as there are stripes, or NULL */
};

static bool wants_list(const struct tz_component *c, enum tz_request_lists lists)
{
    return (c->flags & TZ_COMP_LIST) && (lists == TZ_LISTS_ALL || (lists == TZ_LISTS_FIRST && c->start == 0));
}

/* What a component and the extension behind it have in common. */
static void begin_part(struct part *part, const struct tz_component *c)
{
    memset(part, 0, sizeof *part);
    part->entry.lcme_extent.e_start = c->start;
    part->entry.lcme_extent.e_end = c->end;
    part->md.lmm_magic = c->pool[0] ? LOV_USER_MAGIC_V3 : LOV_USER_MAGIC_V1;
    part->md.lmm_pattern = c->pattern;
    part->md.lmm_stripe_count = c->stripe_count;
    part->md.lmm_stripe_offset = LOV_OFFSET_DEFAULT;
    memcpy(part->md.lmm_pool_name, c->pool, LOV_MAXPOOLNAME);
}

/* Where a component that extends itself ends at first: it is empty, or has one extension where the file begins. */
static uint64_t first_end(const struct tz_component *c)
{
    return c->start ? c->start : c->extension;
}

static bool fill_part(struct part *part, const struct tz_component *c, const uint16_t *osts, uint32_t ost_count,
                      enum tz_request_lists lists)
{
    bool list = wants_list(c, lists);
    bool hint = !list && lists != TZ_LISTS_ANYWHERE && (c->flags & (TZ_COMP_LIST | TZ_COMP_HINT));

    if ((list && (c->first_ost > ost_count || c->stripe_count > ost_count - c->first_ost)) ||
        (hint && c->first_ost >= ost_count) || (list && c->stripe_count == 0))
        return false;
    begin_part(part, c);
    part->md.lmm_stripe_size = c->stripe_size;
    if (list || hint)
        part->md.lmm_stripe_offset = osts[c->first_ost];
    if (list) {
        part->md.lmm_magic = LOV_USER_MAGIC_SPECIFIC;
        part->osts = osts + c->first_ost;
    }
    if (c->flags & TZ_COMP_SEL)
        part->entry.lcme_extent.e_end = first_end(c);
    return true;
}

static void fill_extension(struct part *part, const struct tz_component *c)
{
    begin_part(part, c);
    part->entry.lcme_flags = LCME_FL_EXTENSION;
    part->entry.lcme_extent.e_start = first_end(c);
    part->md.lmm_stripe_size = (uint32_t)(c->extension / SEL_UNIT_SIZE);
}

/* Writes the lov_user_md; returns its size, 0 when there is no room. */
static uint32_t put_md(const struct part *part, uint8_t *at, size_t room)
{
    uint32_t head = tz_lov_md_size(part->md.lmm_magic), count = part->osts ? part->md.lmm_stripe_count : 0;
    uint32_t size = head + count * (uint32_t)sizeof(struct lov_user_ost_data_v1);
    struct lov_user_ost_data_v1 *object = (void *)(at + head);

    if (size > room)
        return 0;
    memcpy(at, &part->md, head);
    for (uint32_t i = 0; i < count; i++)
        object[i] = (struct lov_user_ost_data_v1){.l_ost_idx = part->osts[i]};
    return size;
}

/* Puts a part behind those that are there already; room for all entries is kept before the first. */
static bool append(struct lov_comp_md_v1 *head, struct part *part, size_t capacity)
{
    part->entry.lcme_offset = head->lcm_size;
    part->entry.lcme_size = put_md(part, (uint8_t *)head + head->lcm_size, capacity - head->lcm_size);
    head->lcm_size += part->entry.lcme_size;
    head->lcm_entries[head->lcm_entry_count++] = part->entry;
    return part->entry.lcme_size > 0;
}

size_t tz_lov_request(const struct tz_layout *layout, const uint16_t *osts, uint32_t ost_count, uint16_t from,
                      enum tz_request_lists lists, void *blob, size_t capacity)
{
    struct lov_comp_md_v1 *head = blob;
    size_t first = sizeof *head;
    struct part part;

    if (capacity > XATTR_SIZE_MAX)
        capacity = XATTR_SIZE_MAX;
    if (from >= layout->count || (!layout->composite && (layout->count != 1 || layout->components[0].extension)))
        return 0;
    if (!layout->composite)
        return fill_part(&part, layout->components, osts, ost_count, lists) ? put_md(&part, blob, capacity) : 0;
    for (uint16_t i = from; i < layout->count; i++)
        first += (layout->components[i].flags & TZ_COMP_SEL ? 2 : 1) * sizeof part.entry;
    if (first > capacity)
        return 0;
    *head = (struct lov_comp_md_v1){.lcm_magic = LOV_USER_MAGIC_COMP_V1, .lcm_size = (uint32_t)first};
    for (uint16_t i = from; i < layout->count; i++) {
        const struct tz_component *c = &layout->components[i];

        if (!fill_part(&part, c, osts, ost_count, lists) || !append(head, &part, capacity))
            return 0;
        if (c->flags & TZ_COMP_SEL) {
            fill_extension(&part, c);
            if (!append(head, &part, capacity))
                return 0;
        }
    }
    return head->lcm_size;
}

size_t tz_lov_deletion(void *blob, size_t capacity)
{
    static const struct tz_component any = {.end = LUSTRE_EOF, .pattern = LOV_PATTERN_RAID0};
    static const struct tz_layout layout = {&any, 1, true, false};
    size_t length = tz_lov_request(&layout, NULL, 0, 0, TZ_LISTS_ANYWHERE, blob, capacity);

    if (length)
        ((struct lov_comp_md_v1 *)blob)->lcm_entries[0].lcme_flags = LCME_FL_NEG | LCME_FL_INIT;
    return length;
}

/* The objects of an entry are on the first OSTs of the list: the MDS shortens a list that its extent cannot use. */
static bool on_listed(const struct tz_lov_entry *e, const struct tz_component *c, const uint16_t *osts)
{
    if (e->objects > c->stripe_count)
        return false;
    for (uint32_t i = 0; i < e->objects; i++)
        if (e->object[i].l_ost_idx != osts[c->first_ost + i])
            return false;
    return true;
}

static bool is_extension(const void *blob, size_t length, uint32_t i)
{
    struct tz_lov_entry e;

    return tz_lov_entry(blob, length, i, &e) == 0 && (e.flags & LCME_FL_EXTENSION);
}

enum tz_lov_verdict tz_lov_compare(const void *blob, size_t length, const struct tz_layout *layout,
                                   const uint16_t *osts, enum tz_request_lists lists, uint16_t *late)
{
    enum tz_lov_verdict verdict = TZ_LOV_AS_ASKED;
    struct tz_lov_entry e;
    struct tz_lov lov;
    uint32_t next = 0;

    *late = 0;
    if (tz_lov_check(blob, length, &lov) || lov.odd || lov.composite != layout->composite)
        return TZ_LOV_OTHER;
    for (uint16_t i = 0; i < layout->count; i++) {
        const struct tz_component *c = &layout->components[i];

        if (next >= lov.entries || tz_lov_entry(blob, length, next++, &e) || e.start != c->start ||
            (!(c->flags & TZ_COMP_SEL) && e.end != c->end) || ((e.pattern ^ c->pattern) & PATTERN_ASKED))
            return TZ_LOV_OTHER;
        if (next < lov.entries && (c->flags & TZ_COMP_SEL) && is_extension(blob, length, next))
            next++; /* gone once the component before it has grown to its end */
        if (!wants_list(c, lists))
            continue;
        if (e.objects == 0 || (layout->composite && !(e.flags & LCME_FL_INIT))) {
            if (verdict == TZ_LOV_AS_ASKED)
                *late = i;
            verdict = TZ_LOV_LATE;
        } else if (!on_listed(&e, c, osts)) {
            return TZ_LOV_OTHER;
        }
    }
    return next == lov.entries ? verdict : TZ_LOV_OTHER;
}
