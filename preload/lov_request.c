/* Layouts that are asked for: from a map's components and OSTs to a lustre.lov blob, and back to a verdict. */
#include "lov.h"

/* The MDS takes the overstriping bit off where no OST came twice. */
#define PATTERN_ASKED (0xffffu & ~(unsigned)TZ_PATTERN_OVERSTRIPED)

struct part {
    struct tz_lov_entry entry;
    const uint16_t *osts; /* explicit list, `entry.objects` long */
};

static bool wants_list(const struct tz_component *c, enum tz_request_lists lists)
{
    return (c->flags & TZ_COMP_LIST) && (lists == TZ_LISTS_ALL || (lists == TZ_LISTS_FIRST && c->start == 0));
}

static void fill_pool(struct tz_lov_entry *e, const struct tz_component *c)
{
    memcpy(e->pool, c->pool, TZ_LOV_POOL);
    e->pool[TZ_LOV_POOL - 1] = '\0';
    e->magic = e->pool[0] ? TZ_LOV_V3 : TZ_LOV_V1;
}

static bool fill_part(struct part *part, const struct tz_component *c, const uint16_t *osts, uint32_t ost_count,
                      enum tz_request_lists lists)
{
    struct tz_lov_entry *e = &part->entry;
    bool list = wants_list(c, lists);
    bool hint = !list && lists != TZ_LISTS_ANYWHERE && (c->flags & (TZ_COMP_LIST | TZ_COMP_HINT));

    memset(part, 0, sizeof *part);
    if ((list && (c->first_ost > ost_count || c->stripe_count > ost_count - c->first_ost)) ||
        (hint && c->first_ost >= ost_count) || (list && c->stripe_count == 0))
        return false;
    fill_pool(e, c);
    e->start = c->start;
    e->end = c->end;
    e->pattern = c->pattern;
    e->stripe_size = c->stripe_size;
    e->stripe_count = c->stripe_count;
    e->stripe_offset = list || hint ? osts[c->first_ost] : TZ_OFFSET_ANY;
    if (list) {
        e->magic = TZ_LOV_SPECIFIC;
        e->objects = c->stripe_count;
        part->osts = osts + c->first_ost;
    }
    if (c->flags & TZ_COMP_SEL) /* it starts empty, or with one extension where the file begins */
        e->end = c->start ? c->start : c->extension;
    return true;
}

static void fill_extension(struct part *part, const struct tz_component *c)
{
    struct tz_lov_entry *e = &part->entry;

    memset(part, 0, sizeof *part);
    fill_pool(e, c);
    e->flags = TZ_LCME_EXTENSION;
    e->start = c->start ? c->start : c->extension;
    e->end = c->end;
    e->pattern = c->pattern;
    e->stripe_size = (uint32_t)(c->extension / 1024);
    e->stripe_count = c->stripe_count;
    e->stripe_offset = TZ_OFFSET_ANY;
}

static uint32_t part_size(const struct part *part)
{
    return (part->entry.magic == TZ_LOV_V1 ? TZ_LOV_HEAD : TZ_LOV_MD_V3) + TZ_LOV_OBJECT * part->entry.objects;
}

/* Writes one lov_user_md at `blob + offset`; returns its size, 0 when it does not fit. */
static uint32_t put_part(const struct part *part, uint8_t *blob, size_t offset, size_t capacity)
{
    struct tz_lov plain = {.magic = part->entry.magic, .size = part_size(part), .entries = 1};
    struct tz_lov_entry e = part->entry;
    uint8_t *at = blob + offset;

    if (offset + plain.size > capacity)
        return 0;
    e.offset = 0;
    e.objects = 0;
    tz_lov_encode(&plain, &e, NULL, at, plain.size);
    for (uint32_t i = 0; i < part->entry.objects; i++)
        tz_put32(at + TZ_LOV_MD_V3 + TZ_LOV_OBJECT * i + 20, part->osts[i]);
    return plain.size;
}

static void put_entry(uint8_t *at, const struct tz_lov_entry *e, uint32_t offset, uint32_t size)
{
    tz_put32(at + 4, e->flags);
    tz_put64(at + 8, e->start);
    tz_put64(at + 16, e->end);
    tz_put32(at + 24, offset);
    tz_put32(at + 28, size);
}

size_t tz_lov_request(const struct tz_layout *layout, const uint16_t *osts, uint32_t ost_count, uint16_t from,
                      enum tz_request_lists lists, void *blob, size_t capacity)
{
    uint32_t entries = 0, written = 0, size;
    struct part parts[2];
    uint8_t *out = blob;
    size_t at;

    if (from >= layout->count || (!layout->composite && (layout->count != 1 || layout->components[0].extension)))
        return 0;
    if (!layout->composite)
        return fill_part(&parts[0], layout->components, osts, ost_count, lists) ? put_part(&parts[0], out, 0, capacity)
                                                                                : 0;
    for (uint16_t i = from; i < layout->count; i++)
        entries += layout->components[i].flags & TZ_COMP_SEL ? 2 : 1;
    at = TZ_LOV_HEAD + (size_t)TZ_LOV_ENTRY * entries;
    if (at > capacity)
        return 0;
    memset(out, 0, at);
    for (uint16_t i = from; i < layout->count; i++) {
        const struct tz_component *c = &layout->components[i];
        int n = c->flags & TZ_COMP_SEL ? 2 : 1;

        if (!fill_part(&parts[0], c, osts, ost_count, lists))
            return 0;
        if (n == 2)
            fill_extension(&parts[1], c);
        for (int k = 0; k < n; k++, written++, at += size) {
            size = put_part(&parts[k], out, at, capacity);
            if (size == 0)
                return 0;
            put_entry(out + TZ_LOV_HEAD + TZ_LOV_ENTRY * written, &parts[k].entry, (uint32_t)at, size);
        }
    }
    if (at > TZ_LOV_MAX)
        return 0;
    tz_put32(out, TZ_LOV_COMPOSITE);
    tz_put32(out + 4, (uint32_t)at);
    tz_put16(out + 14, (uint16_t)entries);
    return at;
}

/* The objects of an entry are on the first OSTs of the list: the MDS shortens a list that its extent cannot use. */
static bool on_listed(const void *blob, size_t length, const struct tz_lov_entry *e, const struct tz_component *c,
                      const uint16_t *osts)
{
    struct tz_lov_object object;

    if (e->objects > c->stripe_count)
        return false;
    for (uint32_t i = 0; i < e->objects; i++)
        if (tz_lov_object(blob, length, e, i, &object) || object.ost != osts[c->first_ost + i])
            return false;
    return true;
}

static bool is_extension(const void *blob, size_t length, uint32_t i)
{
    struct tz_lov_entry e;

    return tz_lov_entry(blob, length, i, &e) == 0 && (e.flags & TZ_LCME_EXTENSION);
}

enum tz_lov_verdict tz_lov_compare(const void *blob, size_t length, const struct tz_layout *layout,
                                   const uint16_t *osts, enum tz_request_lists lists, uint16_t *late)
{
    enum tz_lov_verdict verdict = TZ_LOV_AS_ASKED;
    struct tz_lov_entry e;
    struct tz_lov lov;
    uint32_t next = 0;

    *late = 0;
    if (tz_lov_check(blob, length, &lov) || (lov.magic == TZ_LOV_COMPOSITE) != layout->composite)
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
        if (e.objects == 0 || (layout->composite && !(e.flags & TZ_LCME_INIT))) {
            if (verdict == TZ_LOV_AS_ASKED)
                *late = i;
            verdict = TZ_LOV_LATE;
        } else if (!on_listed(blob, length, &e, c, osts)) {
            return TZ_LOV_OTHER;
        }
    }
    return next == lov.entries ? verdict : TZ_LOV_OTHER;
}
