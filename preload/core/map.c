/* Checking a map, and finding a name in it. */
#include "core/map.h"
#include "core/siphash.h"

#define MAP_MAGIC "TZMAP001"

enum { VERSION = 2 };
enum { COMPOSITE = 1, SHARED = 2 };

struct layout_head {
    uint16_t components, flags;
    uint32_t osts;
    uint32_t ost_count; /* of the layout's file system: every index in its rows is below */
    uint32_t zero;
};

static const struct layout_head *layout_at(const struct tz_map *map, uint32_t index)
{
    return (const void *)(map->layouts + tz_get32(map->layouts + 4 * (size_t)index));
}

static const char *check_layout(const struct layout_head *head, uint32_t most_osts)
{
    const struct tz_component *c = (const void *)(head + 1);
    uint64_t reached = 0;

    if (head->components == 0 || ((head->flags & COMPOSITE) == 0 && head->components != 1))
        return "a layout has an impossible number of components";
    if (head->osts > UINT16_MAX)
        return "a layout has more OSTs than a row can hold";
    if (head->ost_count == 0 || head->ost_count > most_osts)
        return "a layout's file system has an impossible number of OSTs";
    for (uint32_t i = 0; i < head->components; i++, c++) {
        uint32_t used = c->flags & TZ_COMP_LIST ? c->stripe_count : c->flags & TZ_COMP_HINT ? 1 : 0;

        if (c->start != reached || c->end <= c->start || c->stripe_size % LOV_MIN_STRIPE_SIZE != 0)
            return "the components of a layout do not follow one another";
        if (used && (c->first_ost >= head->osts || used > head->osts - c->first_ost))
            return "a component's OSTs lie outside its row";
        if ((c->flags & TZ_COMP_SEL) && (c->extension == 0 || c->extension % SEL_UNIT_SIZE || c->extension >> 42 ||
                                         (c->start == 0 && c->extension >= c->end)))
            return "a component's extension size is impossible";
        if (((c->flags & TZ_COMP_LIST) && (c->flags & TZ_COMP_HINT)) || !memchr(c->pool, 0, sizeof c->pool))
            return "a component is not well formed";
        reached = c->end;
    }
    return reached == LUSTRE_EOF ? NULL : "a layout does not end at EOF";
}

static const char *check_layouts(const struct tz_map *map, uint64_t table_length)
{
    uint64_t offsets = 4ULL * map->layout_count, at;
    const char *wrong = NULL;

    if (offsets > table_length)
        return "layout table truncated";
    for (uint32_t i = 0; !wrong && i < map->layout_count; i++) {
        at = tz_get32(map->layouts + 4 * (size_t)i);
        if (at % 8 || at < offsets || at + sizeof(struct layout_head) > table_length ||
            at + sizeof(struct layout_head) + 64ULL * layout_at(map, i)->components > table_length)
            return "a layout lies outside its table";
        wrong = check_layout(layout_at(map, i), map->ost_count);
    }
    return wrong;
}

/* [offset, offset + length) lies after the header, inside the file, and starts on 8 bytes. */
static bool inside(const struct tz_map *map, uint64_t offset, uint64_t length)
{
    return offset % 8 == 0 && offset >= TZ_MAP_HEADER && offset <= map->length && length <= map->length - offset;
}

const char *tz_map_check(const void *base, uint64_t length, struct tz_map *map)
{
    const uint8_t *h = base;
    uint64_t layouts, rows, index, sum;
    struct tz_sip sip;

    memset(map, 0, sizeof *map);
    if (length < TZ_MAP_HEADER || memcmp(h, MAP_MAGIC, 8) != 0)
        return "not a placement map";
    if (tz_get32(h + 8) != VERSION || tz_get32(h + 12) != TZ_MAP_HEADER)
        return "a version that this reader does not know";
    if (tz_get64(h + 16) != length)
        return "truncated";
    *map = (struct tz_map){.base = h,
                           .length = length,
                           .generation = tz_get64(h + 24),
                           .created_s = tz_get64(h + 32),
                           .expires_s = tz_get64(h + 40),
                           .ost_count = tz_get32(h + 64),
                           .layout_count = tz_get32(h + 68),
                           .rows_length = tz_get64(h + 88),
                           .slots = tz_get64(h + 104),
                           .row_count = tz_get32(h + 112)};
    memcpy(map->key, h + 48, 16);
    layouts = tz_get64(h + 72);
    rows = tz_get64(h + 80);
    index = tz_get64(h + 96);
    /* The layout table ends where the rows begin. */
    if (!inside(map, layouts, 0) || !inside(map, rows, map->rows_length) || rows < layouts ||
        map->slots > map->length / 4 || !inside(map, index, 4 * map->slots) || map->layout_count > 65536)
        return "a part lies outside the file";
    map->layouts = h + layouts;
    map->rows = h + rows;
    map->index = h + index;
    while (map->rows_length >> 3 >> map->index_bits)
        map->index_bits++;
    if (map->index_bits > 31)
        return "more rows than an index can hold";
    sum = tz_get64(h + 120);
    tz_sip_init(&sip, map->key);
    tz_sip_add(&sip, h, 120);
    tz_sip_add(&sip, map->layouts, rows - layouts);
    if (tz_sip_end(&sip) != sum)
        return "checksum differs";
    return check_layouts(map, rows - layouts);
}

/* Kind, file system and ':', then the text. */
__attribute__((always_inline)) static inline void begin(struct tz_sip *s, const uint8_t key[16], char kind,
                                                        const char *fs, size_t fs_length, const char *text,
                                                        size_t length)
{
    char head[TZ_FS_MAX + 2];

    tz_sip_init(s, key);
    if (fs_length < TZ_FS_MAX) {
        head[0] = kind;
        memcpy(head + 1, fs, fs_length);
        head[fs_length + 1] = ':';
        tz_sip_add(s, head, fs_length + 2);
    } else {
        tz_sip_add(s, &kind, 1);
        tz_sip_add(s, fs, fs_length);
        tz_sip_add(s, ":", 1);
    }
    tz_sip_add(s, text, length);
}

uint64_t tz_hash_exact(const uint8_t key[16], const char *fs, size_t fs_length, const char *name, size_t length)
{
    struct tz_sip s;

    begin(&s, key, 'E', fs, fs_length, name, length);
    return tz_sip_end(&s);
}

static inline uint64_t end_template(struct tz_sip s, int32_t rank, uint32_t n)
{
    uint64_t tail = (uint64_t)n << 32 | (uint32_t)rank;

    tz_sip_add(&s, &tail, sizeof tail);
    return tz_sip_end(&s);
}

uint64_t tz_hash_template(const uint8_t key[16], char kind, const char *fs, size_t fs_length, const char *text,
                          size_t length, int32_t rank, uint32_t n)
{
    struct tz_sip s;

    begin(&s, key, kind, fs, fs_length, text, length);
    return end_template(s, rank, n);
}

/* A row whose index, layout or OSTs are not what they must be is as good as absent. */
static bool read_row(const struct tz_map *map, uint64_t offset, uint64_t hash, struct tz_row *row)
{
    const struct layout_head *head;
    const uint8_t *p;

    if (offset > map->rows_length || map->rows_length - offset < TZ_ROW_HEAD)
        return false;
    p = map->rows + offset;
    row->hash = tz_get64(p);
    row->loose_hash = tz_get64(p + 8);
    if (row->hash != hash && row->loose_hash != hash)
        return false;
    row->layout = tz_get16(p + 16);
    row->ost_count = tz_get16(p + 18);
    row->id = tz_get32(p + 20);
    row->osts = (const uint16_t *)(const void *)(p + TZ_ROW_HEAD);
    if (2ULL * row->ost_count > map->rows_length - offset - TZ_ROW_HEAD || row->layout >= map->layout_count)
        return false;
    head = layout_at(map, row->layout);
    if (head->osts != row->ost_count)
        return false;
    for (uint32_t i = 0; i < row->ost_count; i++)
        if (row->osts[i] >= head->ost_count)
            return false;
    return true;
}

static uint64_t home_slot(const struct tz_map *map, uint64_t hash)
{
    return (uint64_t)(((unsigned __int128)hash * map->slots) >> 64);
}

bool tz_map_find(const struct tz_map *map, uint64_t hash, struct tz_row *row)
{
    uint64_t slot = home_slot(map, hash);
    uint32_t entry, tag = (uint32_t)hash << map->index_bits, mask = (1u << map->index_bits) - 1;

    for (uint64_t probed = 0; probed < map->slots; probed++) {
        entry = tz_get32(map->index + 4 * slot);
        if (entry == 0)
            return false;
        if ((entry & ~mask) == tag && read_row(map, 8 * ((uint64_t)(entry & mask) - 1), hash, row))
            return true;
        if (++slot == map->slots)
            slot = 0;
    }
    return false;
}

enum tz_found tz_map_lookup(const struct tz_map *map, const struct tz_query *q, struct tz_row *row)
{
    static const uint8_t tried[4] = {TZ_FOUND_PRECISE, TZ_FOUND_PRECISE_ANY, TZ_FOUND_LOOSE, TZ_FOUND_LOOSE_ANY};
    int first = q->names->flags & TZ_NAME_VOLATILE ? 0 : 2;
    struct tz_sip s;
    uint64_t hash[4];

    /* Most names are there as they are, and their templates need no hashes. */
    begin(&s, map->key, 'E', q->fs, q->fs_length, q->key, q->key_length);
    if (tz_map_find(map, tz_sip_end(&s), row))
        return TZ_FOUND_EXACT;
    if (first == 0) { /* other names have no row under their precise template */
        begin(&s, map->key, 'T', q->fs, q->fs_length, q->names->precise, q->names->precise_length);
        hash[1] = end_template(s, -1, q->n_precise);
        hash[0] = q->rank == -1 ? hash[1] : end_template(s, q->rank, q->n_precise);
    }
    begin(&s, map->key, 'L', q->fs, q->fs_length, q->names->loose, q->names->loose_length);
    hash[3] = end_template(s, -1, q->n_loose);
    hash[2] = q->rank == -1 ? hash[3] : end_template(s, q->rank, q->n_loose);
    /* The home slots lie anywhere in the index: their cache misses overlap. */
    for (int i = first; map->slots && i < 4; i++)
        __builtin_prefetch(map->index + 4 * home_slot(map, hash[i]));
    for (int i = first; i < 4; i++) {
        if (q->rank == -1 && i % 2 == 0)
            continue;
        if (tz_map_find(map, hash[i], row))
            return tried[i];
    }
    return TZ_FOUND_NOT;
}

void tz_map_layout(const struct tz_map *map, uint16_t index, struct tz_layout *layout)
{
    const struct layout_head *head = layout_at(map, index);

    layout->components = (const void *)(head + 1);
    layout->count = head->components;
    layout->composite = head->flags & COMPOSITE;
    layout->shared = head->flags & SHARED;
}
