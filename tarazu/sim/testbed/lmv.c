/* On which MDT a client makes a directory: the rules of Lustre's LMV (lmv_obd.c of 2.17). What can be set
 * (`lmv.*.qos_*`) is in the client's parameters.
 */
#include "lmv.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

ssize_t lmv_parameter(const char *name, char *text, size_t size)
{
    const char *places[] = {"sys/fs", "sys/kernel/debug"};
    char path[PATH_MAX + 192];
    ssize_t got = -1;

    for (unsigned i = 0; i < 2 && got < 0; i++) {
        uint32_t client = tb_client();
        int fd;

        snprintf(path, sizeof(path), "%s/clients/client%u/%s/lustre/lmv/%s-clilmv-%016llx/%s", tb_dir,
                 client ? client : 1, places[i], tb_state->fs_name,
                 0xffull << 56 | (unsigned long long)(client ? client : 1), name);
        fd = real_open(path, O_RDONLY, 0);
        if (fd < 0)
            continue;
        got = syscall(SYS_read, fd, text, size - 1);
        real_close(fd);
    }
    text[got > 0 ? got : 0] = 0;
    return got;
}

static bool excluded(const char *name)
{
    char text[4096], *rest = text, *pattern;

    if (lmv_parameter("qos_exclude_patterns", text, sizeof(text)) < 0)
        return false;
    while ((pattern = strsep(&rest, "\n: ")))
        if (*pattern && fnmatch(pattern, name, 0) == 0)
            return true;
    return false;
}

/* The stripes of a directory with several: the MDTs that are named, else those from the first one on. */
static int stripes(struct tb_place *place, const struct lmv_user_md *lum, uint32_t first)
{
    int count = lum->lum_stripe_count;

    if (count < 0 || count > (int)tb_state->n_mdts)
        count = (int)tb_state->n_mdts;
    place->hash_type = lum->lum_hash_type & LMV_HASH_TYPE_MASK ? lum->lum_hash_type : LMV_HASH_TYPE_FNV_1A_64;
    for (int i = 0; i < count; i++) {
        uint32_t mdt = (first + (uint32_t)i) % tb_state->n_mdts;

        if (lum->lum_magic == LMV_USER_MAGIC_SPECIFIC)
            mdt = lum->lum_objects[i].lum_mds;
        if (mdt >= tb_state->n_mdts)
            return -ENODEV;
        if (place->stripes < TB_MAX_DIR_STRIPES)
            place->stripe_mdt[place->stripes++] = (uint8_t)mdt;
    }
    return 0;
}

static int specific(uint32_t wanted)
{
    if (wanted >= tb_state->n_mdts)
        return -ENODEV;
    return (int)wanted;
}

/*
 * Where the directory `name` of `parent` comes to lie; `asked`: what LL_IOC_LMV_SETSTRIPE has, or NULL. Fills the place
 * that it will have. Returns the MDT, or -ENODEV.
 */
int lmv_choose(int parent, const char *name, const struct lmv_user_md *asked, struct tb_place *place)
{
    struct lmv_inherited at = {0};
    struct tb_place of_parent;
    const struct lmv_user_md *striping = asked;
    uint32_t there;
    unsigned depth;
    int mdt;
    bool rr;

    memset(place, 0, sizeof(*place));
    if (tb_state->n_mdts > 1)
        at = lmv_inherited(parent);
    place_load(parent, &of_parent);
    there = place_of_name(parent, name);
    mdt = (int)there;
    depth = at.inherit_depth ? at.inherit_depth : at.depth;
    rr = at.depth == 0 || (!asked && at.rr) || (at.set && at.dmv.lum_max_inherit_rr != LMV_INHERIT_RR_NONE);
    if (asked && asked->lum_stripe_offset != LMV_OFFSET_DEFAULT)
        mdt = specific(asked->lum_stripe_offset);
    else if (asked && of_parent.stripes < 2 && asked->lum_magic == LMV_USER_MAGIC)
        mdt = lmv_by_space(there, depth, rr, true);
    else if (!asked && at.set && at.dmv.lum_stripe_offset != LMV_OFFSET_DEFAULT)
        mdt = specific(at.dmv.lum_stripe_offset);
    else if (!asked && of_parent.stripes < 2 && (at.by_space || at.set) && !excluded(name))
        mdt = lmv_by_space(there, depth, rr, false);
    if (mdt >= 0 && (tb_state->mdt[mdt].flags & MDT_NO_CREATE))
        mdt = lmv_by_space(there, depth, rr, asked != NULL);
    if (mdt < 0)
        return mdt;
    if (tb_state->mdt[mdt].flags & MDT_INACTIVE)
        return -ENODEV;
    if (!striping && at.set)
        striping = &at.dmv;
    place->mdt = (uint32_t)mdt;
    if (striping && (striping->lum_stripe_count > 1 || striping->lum_stripe_count < 0)) {
        int rc = stripes(place, striping, (uint32_t)mdt);

        return rc ? rc : mdt;
    }
    return mdt;
}
