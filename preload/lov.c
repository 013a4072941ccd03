/* The lustre.lov attribute, decoded within its bounds and encoded again. */
#include "lov.h"

static uint32_t md_header(uint32_t magic)
{
    return magic == TZ_LOV_V1 ? TZ_LOV_HEAD : magic == TZ_LOV_V3 || magic == TZ_LOV_SPECIFIC ? TZ_LOV_MD_V3 : 0;
}

static int read_md(const uint8_t *md, uint32_t size, struct tz_lov_entry *e)
{
    uint32_t header;

    if (size < TZ_LOV_HEAD)
        return EINVAL;
    e->magic = tz_get32(md);
    header = md_header(e->magic);
    if (header == 0)
        return EOPNOTSUPP;
    if (size < header || (size - header) % TZ_LOV_OBJECT != 0)
        return EINVAL;
    e->pattern = tz_get32(md + 4);
    e->object_id = tz_get64(md + 8);
    e->object_seq = tz_get64(md + 16);
    e->stripe_size = tz_get32(md + 24);
    e->stripe_count = tz_get16(md + 28);
    e->stripe_offset = tz_get16(md + 30);
    memset(e->pool, 0, sizeof e->pool);
    if (header == TZ_LOV_MD_V3)
        memcpy(e->pool, md + 32, TZ_LOV_POOL);
    e->objects = (size - header) / TZ_LOV_OBJECT;
    return 0;
}

static int read_head(const uint8_t *blob, size_t length, struct tz_lov *lov)
{
    memset(lov, 0, sizeof *lov);
    if (length < TZ_LOV_HEAD || length > TZ_LOV_MAX)
        return EINVAL;
    lov->magic = tz_get32(blob);
    if (lov->magic != TZ_LOV_COMPOSITE) {
        lov->entries = 1;
        lov->size = (uint32_t)length;
        return md_header(lov->magic) ? 0 : EOPNOTSUPP;
    }
    lov->size = tz_get32(blob + 4);
    lov->generation = tz_get32(blob + 8);
    lov->flags = tz_get16(blob + 12);
    lov->entries = tz_get16(blob + 14);
    memcpy(lov->rest, blob + 16, sizeof lov->rest);
    if (lov->size > length || lov->size < TZ_LOV_HEAD + (uint64_t)TZ_LOV_ENTRY * lov->entries)
        return EINVAL;
    return 0;
}

static void read_entry(const uint8_t *at, struct tz_lov_entry *e)
{
    e->id = tz_get32(at);
    e->flags = tz_get32(at + 4);
    e->start = tz_get64(at + 8);
    e->end = tz_get64(at + 16);
    e->offset = tz_get32(at + 24);
    e->size = tz_get32(at + 28);
    e->generation = tz_get32(at + 32);
    memcpy(e->rest, at + 36, sizeof e->rest);
}

static int read_composite_entry(const uint8_t *blob, const struct tz_lov *lov, uint32_t i, struct tz_lov_entry *e)
{
    read_entry(blob + TZ_LOV_HEAD + (size_t)TZ_LOV_ENTRY * i, e);
    if (e->offset < TZ_LOV_HEAD + (uint64_t)TZ_LOV_ENTRY * lov->entries || e->offset > lov->size ||
        e->size > lov->size - e->offset)
        return EINVAL;
    return read_md(blob + e->offset, e->size, e);
}

int tz_lov_entry(const void *blob, size_t length, uint32_t i, struct tz_lov_entry *entry)
{
    struct tz_lov lov;
    int rc = read_head(blob, length, &lov);

    if (rc)
        return rc;
    if (i >= lov.entries)
        return EINVAL;
    if (lov.magic == TZ_LOV_COMPOSITE)
        return read_composite_entry(blob, &lov, i, entry);
    memset(entry, 0, sizeof *entry);
    entry->end = TZ_EOF;
    entry->size = (uint32_t)length;
    rc = read_md(blob, (uint32_t)length, entry);
    if (rc == 0 && entry->objects)
        entry->flags = TZ_LCME_INIT;
    return rc;
}

int tz_lov_check(const void *blob, size_t length, struct tz_lov *lov)
{
    int rc = read_head(blob, length, lov);
    struct tz_lov_entry entry;
    uint64_t reached = 0;

    if (rc == 0 && lov->magic != TZ_LOV_COMPOSITE)
        return tz_lov_entry(blob, length, 0, &entry);
    for (uint32_t i = 0; rc == 0 && i < lov->entries; i++) {
        rc = read_composite_entry(blob, lov, i, &entry);
        if (rc == 0 && entry.offset < reached)
            rc = EINVAL; /* overlapping parts */
        reached = (uint64_t)entry.offset + entry.size;
    }
    return rc;
}

int tz_lov_object(const void *blob, size_t length, const struct tz_lov_entry *entry, uint32_t i,
                  struct tz_lov_object *object)
{
    uint64_t at = entry->offset + (uint64_t)md_header(entry->magic) + (uint64_t)TZ_LOV_OBJECT * i;
    const uint8_t *p = blob;

    if (i >= entry->objects || at + TZ_LOV_OBJECT > length)
        return EINVAL;
    object->id = tz_get64(p + at);
    object->seq = tz_get64(p + at + 8);
    object->generation = tz_get32(p + at + 16);
    object->ost = tz_get32(p + at + 20);
    return 0;
}

static void write_md(uint8_t *md, const struct tz_lov_entry *e, const struct tz_lov_object *objects)
{
    uint8_t *p = md + md_header(e->magic);

    tz_put32(md, e->magic);
    tz_put32(md + 4, e->pattern);
    tz_put64(md + 8, e->object_id);
    tz_put64(md + 16, e->object_seq);
    tz_put32(md + 24, e->stripe_size);
    tz_put16(md + 28, e->stripe_count);
    tz_put16(md + 30, e->stripe_offset);
    if (e->magic != TZ_LOV_V1)
        memcpy(md + 32, e->pool, TZ_LOV_POOL);
    for (uint32_t i = 0; i < e->objects; i++, p += TZ_LOV_OBJECT) {
        tz_put64(p, objects[i].id);
        tz_put64(p + 8, objects[i].seq);
        tz_put32(p + 16, objects[i].generation);
        tz_put32(p + 20, objects[i].ost);
    }
}

static void write_entry(uint8_t *at, const struct tz_lov_entry *e)
{
    tz_put32(at, e->id);
    tz_put32(at + 4, e->flags);
    tz_put64(at + 8, e->start);
    tz_put64(at + 16, e->end);
    tz_put32(at + 24, e->offset);
    tz_put32(at + 28, e->size);
    tz_put32(at + 32, e->generation);
    memcpy(at + 36, e->rest, sizeof e->rest);
}

size_t tz_lov_encode(const struct tz_lov *lov, const struct tz_lov_entry *entries, const struct tz_lov_object *objects,
                     void *blob, size_t capacity)
{
    bool composite = lov->magic == TZ_LOV_COMPOSITE;
    uint8_t *out = blob;

    if (lov->size > capacity || lov->size > TZ_LOV_MAX ||
        lov->size < TZ_LOV_HEAD + (composite ? (size_t)TZ_LOV_ENTRY * lov->entries : 0))
        return 0;
    memset(out, 0, lov->size);
    if (composite) {
        tz_put32(out, lov->magic);
        tz_put32(out + 4, lov->size);
        tz_put32(out + 8, lov->generation);
        tz_put16(out + 12, lov->flags);
        tz_put16(out + 14, lov->entries);
        memcpy(out + 16, lov->rest, sizeof lov->rest);
    }
    for (uint32_t i = 0; i < lov->entries; i++) {
        const struct tz_lov_entry *e = &entries[i];
        uint64_t need = md_header(e->magic) + (uint64_t)TZ_LOV_OBJECT * e->objects;

        if (md_header(e->magic) == 0 || e->offset > lov->size || need > lov->size - e->offset)
            return 0;
        if (composite)
            write_entry(out + TZ_LOV_HEAD + (size_t)TZ_LOV_ENTRY * i, e);
        write_md(out + e->offset, e, objects);
        if (e->objects) /* without any, `objects` may be NULL */
            objects += e->objects;
    }
    return lov->size;
}
