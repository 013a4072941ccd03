/* What a lustre.lov attribute says: plain layouts, and composite ones with their entries. */
#include "core/lov.h"

uint32_t tz_lov_md_size(uint32_t magic)
{
    if (magic == LOV_USER_MAGIC_V3 || magic == LOV_USER_MAGIC_SPECIFIC)
        return sizeof(struct lov_user_md_v3);
    return magic == LOV_USER_MAGIC_V1 ? sizeof(struct lov_user_md_v1) : 0;
}

static uint32_t odd_pattern(uint32_t pattern)
{
    uint32_t known = LOV_PATTERN_RAID0 | LOV_PATTERN_OVERSTRIPING | LOV_PATTERN_PARITY | LOV_PATTERN_COMPRESS |
                     LOV_PATTERN_F_RELEASED;
    uint32_t odd = 0;

    if (pattern == LOV_PATTERN_MDT)
        return 0;
    if (pattern & LOV_PATTERN_PARITY)
        odd |= TZ_LOV_EC;
    if (pattern & LOV_PATTERN_COMPRESS)
        odd |= TZ_LOV_COMPRESSED;
    if (pattern & LOV_PATTERN_F_RELEASED)
        odd |= TZ_LOV_RELEASED;
    return pattern & ~known ? odd | TZ_LOV_UNKNOWN : odd;
}

/* Only flags tell: up to 2.17.0 the MDS leaves in an entry's last 16 bytes, the counts of EC and the type of
 * compression among them, whatever its thread had there before (lod_generate_lovea). */
static uint32_t odd_flags(uint32_t flags)
{
    const uint32_t ec = LCME_FL_PARITY | LCME_FL_IS_LINK_ID, plain = LCME_FL_INIT | LCME_FL_EXTENSION,
                   compressed = LCME_FL_COMPRESS | LCME_FL_PARTIAL | LCME_FL_NOCOMPR,
                   mirror = LCME_FL_STALE | LCME_FL_PREF_RW | LCME_FL_OFFLINE | LCME_FL_NOSYNC;
    uint32_t odd = flags & ec ? TZ_LOV_EC : 0;

    if (flags & compressed)
        odd |= TZ_LOV_COMPRESSED;
    if (flags & mirror)
        odd |= TZ_LOV_MIRROR;
    return flags & ~(ec | plain | compressed | mirror) ? odd | TZ_LOV_UNKNOWN : odd;
}

static int read_md(const uint8_t *at, size_t size, struct tz_lov_entry *e)
{
    const struct lov_user_md_v3 *md = (const void *)at;
    size_t head;

    if (size < sizeof(struct lov_user_md_v1))
        return EINVAL;
    head = tz_lov_md_size(md->lmm_magic);
    if (head == 0)
        return EOPNOTSUPP;
    if (size < head || (size - head) % sizeof *e->object != 0)
        return EINVAL;
    e->pattern = md->lmm_pattern;
    e->odd |= odd_pattern(md->lmm_pattern);
    e->stripe_size = md->lmm_stripe_size;
    e->stripe_count = md->lmm_stripe_count;
    if (head == sizeof *md)
        memcpy(e->pool, md->lmm_pool_name, sizeof e->pool);
    e->objects = (uint16_t)((size - head) / sizeof *e->object);
    e->object = (const void *)(at + head);
    e->first_ost = md->lmm_stripe_offset;
    if (md->lmm_magic == LOV_USER_MAGIC_SPECIFIC && e->objects)
        e->first_ost = (uint16_t)e->object->l_ost_idx;
    return 0;
}

static int read_head(const void *blob, size_t length, struct tz_lov *lov)
{
    const struct lov_comp_md_v1 *head = blob;

    if (length < sizeof *head || length > XATTR_SIZE_MAX)
        return EINVAL;
    *lov = (struct tz_lov){.entries = 1, .mirrors = 1};
    if (head->lcm_magic != LOV_USER_MAGIC_COMP_V1)
        return tz_lov_md_size(head->lcm_magic) ? 0 : EOPNOTSUPP;
    *lov = (struct tz_lov){.composite = true, .entries = head->lcm_entry_count, .mirrors = head->lcm_mirror_count + 1u};
    if (lov->mirrors > 1 || (head->lcm_flags & LCM_FL_FLR_MASK))
        lov->odd |= TZ_LOV_MIRROR;
    if (head->lcm_flags & ~LCM_FL_FLR_MASK)
        lov->odd |= TZ_LOV_UNKNOWN;
    if (head->lcm_size > length || head->lcm_size < sizeof *head + sizeof *head->lcm_entries * lov->entries)
        return EINVAL;
    return 0;
}

static int read_composite_entry(const void *blob, uint32_t i, struct tz_lov_entry *e)
{
    const struct lov_comp_md_v1 *head = blob;
    const struct lov_comp_md_entry_v1 *entry = &head->lcm_entries[i];

    if (entry->lcme_offset < sizeof *head + sizeof *entry * head->lcm_entry_count ||
        entry->lcme_offset > head->lcm_size || entry->lcme_size > head->lcm_size - entry->lcme_offset)
        return EINVAL;
    *e = (struct tz_lov_entry){.start = entry->lcme_extent.e_start,
                               .end = entry->lcme_extent.e_end,
                               .id = entry->lcme_id,
                               .flags = entry->lcme_flags,
                               .odd = odd_flags(entry->lcme_flags)};
    return read_md((const uint8_t *)blob + entry->lcme_offset, entry->lcme_size, e);
}

int tz_lov_entry(const void *blob, size_t length, uint32_t i, struct tz_lov_entry *entry)
{
    struct tz_lov lov;
    int rc = read_head(blob, length, &lov);

    if (rc)
        return rc;
    if (i >= lov.entries)
        return EINVAL;
    if (lov.composite)
        return read_composite_entry(blob, i, entry);
    *entry = (struct tz_lov_entry){.end = LUSTRE_EOF};
    rc = read_md(blob, length, entry);
    if (rc == 0 && entry->objects)
        entry->flags = LCME_FL_INIT;
    return rc;
}

int tz_lov_check(const void *blob, size_t length, struct tz_lov *lov)
{
    const struct lov_comp_md_v1 *head = blob;
    int rc = read_head(blob, length, lov);
    struct tz_lov_entry entry;
    uint64_t reached = 0;

    for (uint32_t i = 0; rc == 0 && i < lov->entries; i++) {
        rc = tz_lov_entry(blob, length, i, &entry);
        if (rc)
            break;
        lov->odd |= entry.odd;
        if (!lov->composite)
            break;
        if (head->lcm_entries[i].lcme_offset < reached)
            rc = EINVAL; /* overlapping parts */
        reached = (uint64_t)head->lcm_entries[i].lcme_offset + head->lcm_entries[i].lcme_size;
    }
    return rc;
}

void tz_lov_forget(void *blob, size_t length)
{
    struct lov_comp_md_v1 *head = blob;
    struct tz_lov_entry entry;
    struct tz_lov lov;

    if (tz_lov_check(blob, length, &lov))
        return;
    for (uint32_t i = 0; i < lov.entries; i++) {
        uint8_t *at = (uint8_t *)blob + (lov.composite ? head->lcm_entries[i].lcme_offset : 0);
        struct lov_user_md_v1 *md = (void *)at;
        struct lov_user_ost_data_v1 *object = (void *)(at + tz_lov_md_size(md->lmm_magic));

        tz_lov_entry(blob, length, i, &entry);
        memset(&md->lmm_oi, 0, sizeof md->lmm_oi);
        for (uint32_t k = 0; k < entry.objects; k++)
            object[k] = (struct lov_user_ost_data_v1){.l_ost_idx = object[k].l_ost_idx};
    }
    if (lov.composite)
        head->lcm_layout_gen = 0;
}
