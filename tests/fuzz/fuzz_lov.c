/* The lustre.lov decoder: whatever bytes the file system answers with, and every layout that a map may ask for. */
#include "fuzz.h"
#include "lov.h"

enum { ENTRIES_MAX = 1400, OBJECTS_MAX = 2800 };

/* What decodes encodes to something that decodes to the same. */
static void round_trip(const uint8_t *blob, size_t length)
{
    static struct tz_lov_entry entries[ENTRIES_MAX], again;
    static struct tz_lov_object objects[OBJECTS_MAX], object;
    static uint8_t out[TZ_LOV_MAX];
    uint32_t count = 0;
    struct tz_lov lov;
    size_t written;

    if (tz_lov_check(blob, length, &lov))
        return;
    FUZZ_EXPECT(lov.entries <= ENTRIES_MAX && lov.size <= TZ_LOV_MAX);
    for (uint32_t i = 0; i < lov.entries; i++) {
        FUZZ_EXPECT(tz_lov_entry(blob, length, i, &entries[i]) == 0);
        for (uint32_t k = 0; k < entries[i].objects; k++) {
            FUZZ_EXPECT(count < OBJECTS_MAX);
            FUZZ_EXPECT(tz_lov_object(blob, length, &entries[i], k, &objects[count++]) == 0);
        }
        FUZZ_EXPECT(tz_lov_object(blob, length, &entries[i], entries[i].objects, &object) != 0);
    }
    FUZZ_EXPECT(tz_lov_entry(blob, length, lov.entries, &again) != 0);
    written = tz_lov_encode(&lov, entries, objects, out, sizeof out);
    FUZZ_EXPECT(written == lov.size);
    count = 0;
    for (uint32_t i = 0; i < lov.entries; i++) {
        FUZZ_EXPECT(tz_lov_entry(out, written, i, &again) == 0);
        FUZZ_EXPECT(memcmp(&again, &entries[i], sizeof again) == 0);
        for (uint32_t k = 0; k < again.objects; k++, count++) {
            FUZZ_EXPECT(tz_lov_object(out, written, &again, k, &object) == 0);
            FUZZ_EXPECT(memcmp(&object, &objects[count], sizeof object) == 0);
        }
    }
}

/* The input as components and OSTs: a request is well formed, and never taken for someone else's layout. */
static void ask(const uint8_t *data, size_t size)
{
    static struct tz_component components[64];
    static uint16_t osts[4096];
    static uint8_t blob[TZ_LOV_MAX];
    struct tz_layout layout = {components, 0, false};
    enum tz_request_lists lists;
    struct tz_lov lov;
    uint16_t from;
    size_t bytes, n;

    if (size < 2)
        return;
    layout.count = data[0] % 65;
    layout.composite = data[1] & 1;
    lists = data[1] >> 1 & 3;
    from = data[1] >> 3;
    data += 2;
    size -= 2;
    bytes = size < layout.count * sizeof *components ? size : layout.count * sizeof *components;
    memset(components, 0, sizeof components);
    memcpy(components, data, bytes);
    n = (size - bytes) / 2 < 4096 ? (size - bytes) / 2 : 4096;
    memcpy(osts, data + bytes, 2 * n);
    bytes = tz_lov_request(&layout, osts, (uint32_t)n, from, lists, blob, sizeof blob);
    FUZZ_EXPECT(bytes <= TZ_LOV_MAX);
    if (bytes)
        FUZZ_EXPECT(tz_lov_check(blob, bytes, &lov) == 0);
    if (bytes && from == 0)
        round_trip(blob, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tz_component component = {
        .end = TZ_EOF, .stripe_size = 65536, .stripe_count = 2, .pattern = 1, .flags = TZ_COMP_LIST};
    static const struct tz_component two[2] = {
        {.end = 1 << 20, .stripe_size = 65536, .stripe_count = 1, .pattern = 1, .flags = TZ_COMP_LIST},
        {.start = 1 << 20,
         .end = TZ_EOF,
         .stripe_size = 65536,
         .stripe_count = 2,
         .first_ost = 1,
         .pattern = 1,
         .flags = TZ_COMP_LIST}};
    static const uint16_t osts[3] = {0, 1, 2};
    struct tz_layout plain = {&component, 1, false}, composite = {two, 2, true};
    uint8_t *exact = fuzz_copy(data, size); /* so that a byte too far is seen */
    uint16_t late;

    round_trip(exact, size);
    tz_lov_compare(exact, size, &plain, osts, TZ_LISTS_ALL, &late);
    tz_lov_compare(exact, size, &composite, osts, TZ_LISTS_ALL, &late);
    FUZZ_EXPECT(late < 2);
    free(exact);
    ask(data, size);
    return 0;
}
