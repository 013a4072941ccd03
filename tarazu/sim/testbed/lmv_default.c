/* What of defaults a directory inherits on its way from the root (lmv_obd.c, llite/namei.c of 2.17). */
#include "lmv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool inheritable(uint8_t max)
{
    return max == LMV_INHERIT_UNLIMITED || (max > LMV_INHERIT_END && max <= LMV_INHERIT_MAX);
}

static void next(struct lmv_user_md *dmv)
{
    if (dmv->lum_max_inherit == LMV_INHERIT_END)
        dmv->lum_max_inherit = LMV_INHERIT_NONE;
    else if (dmv->lum_max_inherit != LMV_INHERIT_UNLIMITED && dmv->lum_max_inherit <= LMV_INHERIT_MAX)
        dmv->lum_max_inherit--;
    if (dmv->lum_max_inherit_rr != LMV_INHERIT_RR_NONE && dmv->lum_max_inherit_rr <= LMV_INHERIT_MAX)
        dmv->lum_max_inherit_rr--;
}

/* One level down. The root's default is not inherited: it is looked up where nobody on the way has one. */
static void descend(struct lmv_inherited *at, int fd, bool from_root)
{
    struct tb_place place;

    at->depth++;
    place_load(fd, &place);
    if (from_root)
        at->set = false;
    if (place.has_default) {
        struct lmv_user_md would = at->dmv;

        next(&would);
        at->inherit_depth = at->set && memcmp(&would, &place.dmv, sizeof(would)) == 0 ? at->inherit_depth + 1 : 0;
        at->set = true;
        at->dmv = place.dmv;
    } else if (at->set && inheritable(at->dmv.lum_max_inherit)) {
        next(&at->dmv);
        at->inherit_depth++;
    } else {
        at->set = false;
        at->inherit_depth = 0;
    }
}

struct lmv_inherited lmv_inherited(int fd)
{
    char link[64], path[PATH_MAX], *from, *slash;
    struct lmv_inherited at = {0};
    struct tb_place root;
    ssize_t length;
    int level;

    level = real_open(tb_mount, O_PATH | O_DIRECTORY, 0);
    if (level < 0)
        return at;
    place_load(level, &root);
    real_close(level);
    at.set = root.has_default;
    at.dmv = root.dmv;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = syscall(SYS_readlink, link, path, sizeof(path) - 1);
    if (length <= (ssize_t)strlen(tb_mount))
        return at;
    path[length] = 0;
    for (from = path + strlen(tb_mount) + 1; from; from = slash ? slash + 1 : NULL) {
        slash = strchr(from, '/');
        if (slash)
            *slash = 0;
        level = real_open(path, O_PATH | O_DIRECTORY, 0);
        if (level < 0)
            break;
        descend(&at, level, at.depth == 0);
        real_close(level);
        if (slash)
            *slash = '/';
    }
    if (!at.set && root.has_default && root.dmv.lum_stripe_offset == LMV_OFFSET_DEFAULT) {
        uint8_t max = root.dmv.lum_max_inherit, rr = root.dmv.lum_max_inherit_rr;

        at.by_space = max != LMV_INHERIT_NONE && (max == LMV_INHERIT_UNLIMITED || max > at.depth);
        at.rr = at.by_space && rr != LMV_INHERIT_RR_NONE && (rr == LMV_INHERIT_RR_UNLIMITED || rr > at.depth);
    }
    return at;
}

/* What LL_IOC_LMV_GETSTRIPE says of a directory's default: its own, or what is left of the file system's. */
int lmv_default(int fd, struct lmv_user_md *out)
{
    struct lmv_inherited at = lmv_inherited(fd);
    struct tb_place root;
    int level;

    if (!at.set) {
        level = real_open(tb_mount, O_PATH | O_DIRECTORY, 0);
        place_load(level, &root);
        real_close(level);
        if (!root.has_default)
            return -ENODATA;
        at.dmv = root.dmv;
        if (at.dmv.lum_max_inherit != LMV_INHERIT_UNLIMITED) {
            if (at.dmv.lum_max_inherit > LMV_INHERIT_MAX || at.dmv.lum_max_inherit <= at.depth)
                return -ENODATA;
            at.dmv.lum_max_inherit -= at.depth;
        }
        if (at.dmv.lum_max_inherit_rr != LMV_INHERIT_RR_UNLIMITED)
            at.dmv.lum_max_inherit_rr =
                at.dmv.lum_max_inherit_rr <= at.depth ? LMV_INHERIT_RR_NONE : at.dmv.lum_max_inherit_rr - at.depth;
    }
    *out = at.dmv;
    return 0;
}
