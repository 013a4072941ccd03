/* Stand-in liblustreapi: layouts to and from lov_user_md, and what makes a layout sane. */
#include "llapi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD 32u  /* lov_comp_md_v1 and lov_user_md_v1 are as long */
#define ENTRY 48u /* lov_comp_md_entry_v1 */
#define OBJECT 24u

enum { SANE, FLAGS = 4, DOM_FIRST = 7, ZERO_LENGTH = 11, NOT_ADJACENT, START_GT_END, ALIGN_END, ALIGN_EXTENSION };

static const char *const reasons[] = {
    [FLAGS] = "Invalid component flags",
    [DOM_FIRST] = "A component on the MDT must be the first",
    [ZERO_LENGTH] = "A component must not be empty",
    [NOT_ADJACENT] = "The component must begin where the one before ends",
    [START_GT_END] = "The component begins behind its end",
    [ALIGN_END] = "The component end must be aligned by the stripe size",
    [ALIGN_EXTENSION] = "The extension size must be aligned by the stripe size",
};

static void put16(char *at, uint16_t value)
{
    memcpy(at, &value, 2);
}
static void put32(char *at, uint32_t value)
{
    memcpy(at, &value, 4);
}
static void put64(char *at, uint64_t value)
{
    memcpy(at, &value, 8);
}

static uint16_t get16(const char *at)
{
    uint16_t value;

    memcpy(&value, at, 2);
    return value;
}

static uint32_t get32(const char *at)
{
    uint32_t value;

    memcpy(&value, at, 4);
    return value;
}

static uint64_t get64(const char *at)
{
    uint64_t value;

    memcpy(&value, at, 8);
    return value;
}

static unsigned listed(const struct llapi_comp *comp)
{
    return comp->pattern != LLAPI_DEFAULT && (comp->pattern & LLAPI_SPECIFIC) ? (unsigned)comp->stripe_count : 0;
}

static size_t body_size(const struct llapi_comp *comp)
{
    return HEAD + (listed(comp) || comp->pool[0] ? LLAPI_POOL : 0) + listed(comp) * OBJECT;
}

static int put_body(char *at, const struct llapi_comp *comp)
{
    uint64_t pattern = comp->pattern == LLAPI_DEFAULT ? LLAPI_RAID0 : comp->pattern & ~LLAPI_SPECIFIC;
    unsigned count = listed(comp);
    uint64_t stripes = comp->stripe_count;

    put32(at, count ? LUM_SPECIFIC : comp->pool[0] ? LUM_V3 : LUM_V1);
    put32(at + 4, pattern == LLAPI_MDT ? 0x100 : pattern == LLAPI_OVERSTRIPING ? 0x201 : 1);
    put32(at + 24, comp->stripe_size == LLAPI_DEFAULT ? 0 : (uint32_t)comp->stripe_size);
    if (stripes == LLAPI_DEFAULT)
        stripes = 0;
    else if (stripes >= LLAPI_WIDE_MIN && stripes <= LLAPI_WIDE_MAX)
        stripes = 0xffff - (stripes - LLAPI_WIDE_MIN);
    put16(at + 28, (uint16_t)stripes);
    put16(at + 30, comp->offset == LLAPI_DEFAULT ? 0xffff : (uint16_t)comp->offset);
    if (!count && !comp->pool[0])
        return 0;
    memcpy(at + HEAD, comp->pool, LLAPI_POOL);
    for (unsigned i = 0; i < count; i++) {
        if (i >= comp->n_objects || comp->objects[i] == LLAPI_IDX_MAX)
            return -1; /* a list must name every stripe */
        put32(at + HEAD + LLAPI_POOL + i * OBJECT + 20, comp->objects[i]);
    }
    return 0;
}

/* malloc'ed; NULL with errno. */
void *llapi_to_lum(const struct llapi_layout *layout, size_t *size)
{
    size_t at = layout->composite ? HEAD + layout->n_comps * ENTRY : 0;
    char *lum;

    *size = at;
    for (unsigned i = 0; i < (layout->composite ? layout->n_comps : 1); i++)
        *size += body_size(&layout->comp[i]);
    lum = calloc(1, *size);
    if (!lum)
        return NULL;
    for (unsigned i = 0; i < (layout->composite ? layout->n_comps : 1); i++) {
        const struct llapi_comp *comp = &layout->comp[i];
        char *entry = lum + HEAD + i * ENTRY;

        if (put_body(lum + at, comp) != 0) {
            free(lum);
            errno = EINVAL;
            return NULL;
        }
        if (layout->composite) {
            put32(entry, comp->id);
            put32(entry + 4, comp->flags);
            put64(entry + 8, comp->start);
            put64(entry + 16, comp->end);
            put32(entry + 24, (uint32_t)at);
            put32(entry + 28, (uint32_t)body_size(comp));
        }
        at += body_size(comp);
    }
    if (layout->composite) {
        put32(lum, LUM_COMP);
        put32(lum + 4, (uint32_t)*size);
        put16(lum + 14, (uint16_t)layout->n_comps);
    }
    return lum;
}

static int get_body(const char *at, size_t size, struct llapi_comp *comp)
{
    uint32_t magic, pattern;
    size_t objects_at, count;

    if (size < HEAD)
        return -1;
    magic = get32(at);
    pattern = get32(at + 4);
    if (magic != LUM_V1 && magic != LUM_V3 && magic != LUM_SPECIFIC)
        return -1;
    objects_at = HEAD + (magic == LUM_V1 ? 0 : LLAPI_POOL);
    if (size < objects_at)
        return -1;
    if (magic != LUM_V1)
        memcpy(comp->pool, at + HEAD, LLAPI_POOL - 1);
    comp->pattern = pattern == 0x100 ? LLAPI_MDT : pattern == 0x201 ? LLAPI_OVERSTRIPING : LLAPI_RAID0;
    comp->stripe_size = get32(at + 24) ? get32(at + 24) : LLAPI_DEFAULT;
    comp->stripe_count = get16(at + 28);
    if (comp->stripe_count >= 0xffe0)
        comp->stripe_count = LLAPI_WIDE_MIN + (0xffff - comp->stripe_count);
    else if (comp->stripe_count == 0 && pattern != 0x100)
        comp->stripe_count = LLAPI_DEFAULT;
    count = (size - objects_at) / OBJECT;
    if (llapi_objects(comp, (unsigned)count) != 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        comp->objects[i] = get32(at + objects_at + i * OBJECT + 20);
    comp->offset = count ? comp->objects[0] : get16(at + 30) == 0xffff ? LLAPI_DEFAULT : get16(at + 30);
    return 0;
}

PUBLIC struct llapi_layout *llapi_layout_get_by_xattr(void *xattr, ssize_t size, int flags)
{
    const char *lum = xattr;
    struct llapi_layout *layout;
    unsigned entries;

    (void)flags;
    if (!lum || size < (ssize_t)HEAD) {
        errno = EINVAL;
        return NULL;
    }
    layout = llapi_layout_alloc();
    if (!layout)
        return NULL;
    if (get32(lum) != LUM_COMP) {
        if (get_body(lum, (size_t)size, &layout->comp[0]) == 0)
            return layout;
        goto refuse;
    }
    entries = get16(lum + 14);
    layout->composite = true;
    layout->gen = get32(lum + 8);
    layout->n_comps = entries;
    if (entries == 0 || entries > LLAPI_MAX_COMPS || (size_t)size < HEAD + entries * ENTRY)
        goto refuse;
    for (unsigned i = 0; i < entries; i++) {
        const char *entry = lum + HEAD + i * ENTRY;
        uint32_t offset = get32(entry + 24), length = get32(entry + 28);
        struct llapi_comp *comp = &layout->comp[i];

        if (offset > (size_t)size || length > (size_t)size - offset || get_body(lum + offset, length, comp) != 0)
            goto refuse;
        comp->id = get32(entry);
        comp->flags = get32(entry + 4);
        comp->start = get64(entry + 8);
        comp->end = get64(entry + 16);
    }
    return layout;
refuse:
    llapi_layout_free(layout);
    errno = EINVAL;
    return NULL;
}

static int check(const struct llapi_layout *layout, unsigned i, bool incomplete)
{
    const struct llapi_comp *comp = &layout->comp[i], *before = i ? comp - 1 : NULL;
    bool extended = i + 1 < layout->n_comps && (comp[1].flags & LCME_EXTENSION);

    if (comp->id == 0 && (comp->flags & ~(LCME_EXTENSION | 0x6u)) && !incomplete)
        return FLAGS;
    if ((comp->flags & LCME_EXTENSION) && !before)
        return FLAGS;
    if ((comp->pattern & ~LLAPI_SPECIFIC) == LLAPI_MDT && before)
        return DOM_FIRST;
    if (before && comp->start != before->end)
        return NOT_ADJACENT;
    if (comp->start > comp->end)
        return START_GT_END;
    if (incomplete)
        return SANE;
    if (comp->start == comp->end && !extended)
        return ZERO_LENGTH;
    if (comp->flags & LCME_EXTENSION)
        return before->stripe_size != LLAPI_DEFAULT && comp->stripe_size * 1024 % before->stripe_size ? ALIGN_EXTENSION
                                                                                                      : SANE;
    if (comp->stripe_size != LLAPI_DEFAULT && comp->end != LLAPI_EOF && comp->end != comp->start &&
        comp->end % comp->stripe_size)
        return ALIGN_END;
    return SANE;
}

/* 0, or a number for llapi_layout_sanity_perror. */
PUBLIC int llapi_layout_sanity(struct llapi_layout *layout, bool incomplete, bool flr)
{
    (void)flr;
    if (!llapi_current(layout))
        return -1;
    for (unsigned i = 0; layout->composite && i < layout->n_comps; i++) {
        int rc = check(layout, i, incomplete);

        if (rc) {
            errno = EINVAL;
            return rc;
        }
    }
    return 0;
}

int llapi_layout_v2_sanity(struct llapi_layout *layout, bool incomplete, bool flr, char *fs_name);

PUBLIC int llapi_layout_v2_sanity(struct llapi_layout *layout, bool incomplete, bool flr, char *fs_name)
{
    (void)fs_name;
    return llapi_layout_sanity(layout, incomplete, flr);
}

PUBLIC void llapi_layout_sanity_perror(int error)
{
    const int known = (int)(sizeof(reasons) / sizeof(*reasons));

    if (error > 0 && error < known && reasons[error])
        fprintf(stderr, "%s\n", reasons[error]);
    else
        fprintf(stderr, "Invalid layout\n");
}
