/* The map reader: a file as it is, and once more with length and checksum put right, to get behind them. */
#include "fuzz.h"
#include "core/map.h"
#include "core/lov.h"
#include "core/siphash.h"

enum { SLOTS_TRIED = 64 };

static void mend(uint8_t *h, size_t size)
{
    uint64_t table = tz_get64(h + 72), rows = tz_get64(h + 80);
    struct tz_sip sip;

    tz_put64(h + 16, size);
    if (table > rows || rows > size)
        return;
    tz_sip_init(&sip, h + 48);
    tz_sip_add(&sip, h, 120);
    tz_sip_add(&sip, h + table, rows - table);
    tz_put64(h + 120, tz_sip_end(&sip));
}

/* What the library does with a row that it has found. */
static void use(const struct tz_map *map, const struct tz_row *row)
{
    static uint8_t blob[XATTR_SIZE_MAX];
    struct tz_layout layout;
    struct tz_lov lov;
    uint16_t late;
    size_t length;

    FUZZ_EXPECT(row->layout < map->layout_count);
    for (uint32_t i = 0; i < row->ost_count; i++)
        FUZZ_EXPECT(row->osts[i] < map->ost_count);
    tz_map_layout(map, row->layout, &layout);
    for (int lists = TZ_LISTS_ALL; lists <= TZ_LISTS_ANYWHERE; lists++)
        for (uint16_t from = 0; from < layout.count && from < 4; from++) {
            length = tz_lov_request(&layout, row->osts, row->ost_count, from, lists, blob, sizeof blob);
            if (length == 0)
                continue;
            FUZZ_EXPECT(tz_lov_check(blob, length, &lov) == 0);
            tz_lov_compare(blob, length, &layout, row->osts, lists, &late);
        }
}

static void look_up(const struct tz_map *map)
{
    static struct tz_names names = {.precise_length = 6, .loose_length = 6, .precise = "/d/f.0", .loose = "/d/f.#"};
    struct tz_query query = {.fs = "lustre", .key = "/d/f.0", .fs_length = 6, .key_length = 6, .names = &names};
    uint64_t mask = (1ULL << map->index_bits) - 1;
    struct tz_row row;

    for (query.rank = -1; query.rank < 2; query.rank++) {
        names.flags = query.rank ? TZ_NAME_VOLATILE : 0;
        if (tz_map_lookup(map, &query, &row))
            use(map, &row);
    }
    for (uint64_t slot = 0; slot < map->slots && slot < SLOTS_TRIED; slot++) {
        uint64_t at = 8 * ((tz_get32(map->index + 4 * slot) & mask) - 1);

        if (at > map->rows_length || map->rows_length - at < 16)
            continue;
        for (int i = 0; i < 2; i++)
            if (tz_map_find(map, tz_get64(map->rows + at + i * 8), &row))
                use(map, &row);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *exact = fuzz_copy(data, size);
    struct tz_map map;

    if (tz_map_check(exact, size, &map) == NULL)
        look_up(&map);
    if (size >= TZ_MAP_HEADER) {
        mend(exact, size);
        if (tz_map_check(exact, size, &map) == NULL)
            look_up(&map);
    }
    free(exact);
    return 0;
}
