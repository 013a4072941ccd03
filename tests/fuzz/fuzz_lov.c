/* The lustre.lov decoder: whatever bytes the file system answers with, and every layout that a map may ask for. */
#include "fuzz.h"
#include "core/lov.h"
#include "core/lov_request.h"

/* What two readings of one entry have to agree in, where only what is different in every file was cleared. */
static bool alike(const struct tz_lov_entry *a, const struct tz_lov_entry *b)
{
    if (a->start != b->start || a->end != b->end || a->flags != b->flags || a->pattern != b->pattern ||
        a->odd != b->odd || a->stripe_size != b->stripe_size || a->stripe_count != b->stripe_count ||
        a->objects != b->objects || memcmp(a->pool, b->pool, sizeof a->pool) != 0)
        return false;
    for (uint32_t k = 0; k < a->objects; k++)
        if (a->object[k].l_ost_idx != b->object[k].l_ost_idx)
            return false;
    return true;
}

/* What decodes says the same without what is different in every file; what does not decode stays as it is. */
static void forget(const uint8_t *blob, size_t length)
{
    uint8_t *plain = fuzz_copy(blob, length);
    struct tz_lov_entry entry, again;
    struct tz_lov lov;

    tz_lov_forget(plain, length);
    if (tz_lov_check(blob, length, &lov)) {
        FUZZ_EXPECT(memcmp(plain, blob, length) == 0);
        free(plain);
        return;
    }
    for (uint32_t i = 0; i < lov.entries; i++) {
        FUZZ_EXPECT(tz_lov_entry(blob, length, i, &entry) == 0);
        FUZZ_EXPECT(tz_lov_entry(plain, length, i, &again) == 0);
        FUZZ_EXPECT(alike(&entry, &again));
    }
    FUZZ_EXPECT(tz_lov_entry(blob, length, lov.entries, &again) != 0);
    free(plain);
}

/* The input as components and OSTs: a request is well formed, and never taken for someone else's layout. */
static void ask(const uint8_t *data, size_t size)
{
    static struct tz_component components[64];
    static uint16_t osts[4096];
    static uint8_t blob[XATTR_SIZE_MAX];
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
    FUZZ_EXPECT(bytes <= XATTR_SIZE_MAX);
    if (bytes)
        FUZZ_EXPECT(tz_lov_check(blob, bytes, &lov) == 0 && lov.composite == layout.composite);
    forget(blob, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tz_component component = {.end = LUSTRE_EOF,
                                                  .stripe_size = LOV_MIN_STRIPE_SIZE,
                                                  .stripe_count = 2,
                                                  .pattern = LOV_PATTERN_RAID0,
                                                  .flags = TZ_COMP_LIST};
    static const struct tz_component two[2] = {{.end = 1 << 20,
                                                .stripe_size = LOV_MIN_STRIPE_SIZE,
                                                .stripe_count = 1,
                                                .pattern = LOV_PATTERN_RAID0,
                                                .flags = TZ_COMP_LIST},
                                               {.start = 1 << 20,
                                                .end = LUSTRE_EOF,
                                                .stripe_size = LOV_MIN_STRIPE_SIZE,
                                                .stripe_count = 2,
                                                .first_ost = 1,
                                                .pattern = LOV_PATTERN_RAID0,
                                                .flags = TZ_COMP_LIST}};
    static const uint16_t osts[3] = {0, 1, 2};
    struct tz_layout plain = {&component, 1, false}, composite = {two, 2, true};
    uint8_t *exact = fuzz_copy(data, size); /* so that a byte too far is seen */
    enum tz_lov_verdict verdicts[2];
    struct tz_lov lov;
    uint16_t late;

    forget(exact, size);
    verdicts[0] = tz_lov_compare(exact, size, &plain, osts, TZ_LISTS_ALL, &late);
    verdicts[1] = tz_lov_compare(exact, size, &composite, osts, TZ_LISTS_ALL, &late);
    FUZZ_EXPECT(late < 2);
    if (tz_lov_check(exact, size, &lov) || lov.odd) /* never ours, so never completed */
        FUZZ_EXPECT(verdicts[0] == TZ_LOV_OTHER && verdicts[1] == TZ_LOV_OTHER);
    free(exact);
    ask(data, size);
    return 0;
}
