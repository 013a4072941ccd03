/* On which MDT a client makes a directory: the rules of Lustre's LMV (lmv_obd.c, lu_tgt_descs.c, llite/namei.c
 * of 2.17). What can be set (`lmv.*.qos_*`) is in the client's parameters; what is remembered is in the shared state.
 */
#include "tb.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEPTH 256

/* The default of one directory, and how deep it lies. */
struct inherited {
    bool set, rr, by_space; /* rr, by_space: what the file system's default says of a directory without one */
    unsigned depth, inherit_depth;
    struct lmv_user_md dmv;
};

static struct tb_lmv *lmv_state(void)
{
    uint32_t client = tb_client();

    return &tb_state->lmv[client <= TB_MAX_MDT_CLIENTS ? client : 0];
}

static ssize_t parameter(const char *name, char *text, size_t size)
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

static unsigned number(const char *name, unsigned otherwise)
{
    char text[64];

    return parameter(name, text, sizeof(text)) > 0 ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static bool excluded(const char *name)
{
    char text[4096], *rest = text, *pattern;

    if (parameter("qos_exclude_patterns", text, sizeof(text)) < 0)
        return false;
    while ((pattern = strsep(&rest, "\n: ")))
        if (*pattern && fnmatch(pattern, name, 0) == 0)
            return true;
    return false;
}

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
static void descend(struct inherited *at, int fd, bool from_root)
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

static struct inherited inherited(int fd)
{
    char link[64], path[PATH_MAX], *from, *slash;
    struct inherited at = {0};
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
    struct inherited at = inherited(fd);
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

static bool usable(uint32_t mdt)
{
    /* One that is away counts as there until the client hears otherwise: its connection is not given up. */
    return !(tb_state->mdt[mdt].flags & (MDT_INACTIVE | MDT_NO_CREATE));
}

static uint64_t blocks_free(uint32_t mdt)
{
    const struct tb_mdt *of = &tb_state->mdt[mdt];
    uint64_t used = of->base + (of->directories > 0 ? 4096ull * (uint64_t)of->directories : 0);

    return (used >= of->total ? 0 : of->total - used) >> 16;
}

static uint64_t inodes_free(uint32_t mdt)
{
    const struct tb_mdt *of = &tb_state->mdt[mdt];
    int64_t made = of->directories + of->files;
    uint64_t used = of->files_base + (made > 0 ? (uint64_t)made : 0);

    return (used >= of->files_total ? 0 : of->files_total - used) >> 8;
}

struct qos {
    struct tb_lmv *lmv;
    uint64_t per_object[TB_MAX_MDTS], server_per_object;
    unsigned active;
};

static uint64_t decayed(uint64_t penalty, int64_t used, int64_t now, int64_t max_age)
{
    int64_t age = (now - used) >> 3;

    if (max_age <= 0 || age > 32 * max_age)
        return 0;
    return age > max_age ? penalty >> (age / max_age < 63 ? age / max_age : 63) : penalty;
}

/* Penalties, and whether all have about the same space; false: there is one MDT at most, or they have. */
static bool calculate(struct qos *qos)
{
    unsigned threshold = number("qos_threshold_rr", 5) * 256 / 100,
             wide = 256 - number("qos_prio_free", 90) * 256 / 100;
    uint64_t most = 0, least = UINT64_MAX, most_inodes = 0, least_inodes = UINT64_MAX, sum = 0, inodes_sum = 0;
    int64_t now = time(NULL), max_age = number("qos_maxage", 60);
    struct tb_lmv *lmv = qos->lmv;
    bool reset = lmv->same_space;

    qos->active = 0;
    for (uint32_t i = 0; i < tb_state->n_mdts; i++)
        qos->active += !(tb_state->mdt[i].flags & MDT_INACTIVE);
    if (qos->active < 2)
        return false;
    for (uint32_t i = 0; i < tb_state->n_mdts; i++) {
        uint64_t blocks = blocks_free(i), inodes = inodes_free(i);

        if ((tb_state->mdt[i].flags & MDT_INACTIVE) || !blocks)
            continue;
        sum += blocks;
        most = blocks > most ? blocks : most;
        least = blocks < least ? blocks : least;
        if (!inodes)
            continue;
        inodes_sum += inodes;
        most_inodes = inodes > most_inodes ? inodes : most_inodes;
        least_inodes = inodes < least_inodes ? inodes : least_inodes;
        /* doubled: all are on one server, which is not penalised against another */
        qos->per_object[i] = ((wide * blocks * inodes >> 9) / (qos->active - 1)) << 1;
        lmv->penalty[i] = reset ? 0 : decayed(lmv->penalty[i], lmv->used[i], now, max_age);
    }
    qos->server_per_object = (wide * sum * inodes_sum >> 8) / qos->active >> 1;
    lmv->server_penalty = reset ? 0 : decayed(lmv->server_penalty, lmv->server_used, now, max_age);
    lmv->same_space = most * (256 - threshold) / 256 < least && most_inodes * (256 - threshold) / 256 < least_inodes;
    return !lmv->same_space;
}

static uint64_t weight(const struct qos *qos, uint32_t mdt)
{
    uint64_t available = blocks_free(mdt) * inodes_free(mdt);
    uint64_t penalty = qos->lmv->penalty[mdt] + qos->lmv->server_penalty;

    return available < penalty ? 0 : available - penalty;
}

static void chosen(struct qos *qos, uint32_t mdt)
{
    struct tb_lmv *lmv = qos->lmv;

    lmv->used[mdt] = lmv->server_used = time(NULL);
    lmv->penalty[mdt] = (lmv->penalty[mdt] >> 1) + qos->per_object[mdt] * qos->active;
    lmv->server_penalty = (lmv->server_penalty >> 1) + qos->server_per_object;
    lmv->server_penalty -= lmv->server_penalty < qos->server_per_object ? lmv->server_penalty : qos->server_per_object;
    for (uint32_t i = 0; i < tb_state->n_mdts; i++)
        lmv->penalty[i] -= lmv->penalty[i] < qos->per_object[i] ? lmv->penalty[i] : qos->per_object[i];
}

/* By what is free, weighted at random; -EAGAIN where all are as full, or nobody is usable. */
static int by_weight(struct qos *qos, uint32_t parent, unsigned depth, bool rr)
{
    uint64_t total = 0, available = 0, of_parent = 0, seen = 0, drawn;
    unsigned count = 0;

    if (!calculate(qos))
        return -EAGAIN;
    for (uint32_t i = 0; i < tb_state->n_mdts; i++)
        if (usable(i)) {
            total += weight(qos, i);
            available += blocks_free(i) * inodes_free(i);
            count++;
        }
    if (count && usable(parent))
        of_parent = blocks_free(parent) * inodes_free(parent);
    if (!rr && count && of_parent && of_parent >= available * 16 / (count * (depth + 10)))
        return (int)parent;
    drawn = tb_random_below(total);
    for (uint32_t i = 0; i < tb_state->n_mdts; i++) {
        if (!usable(i))
            continue;
        seen += weight(qos, i);
        if (seen < drawn)
            continue;
        chosen(qos, i);
        return (int)i;
    }
    return -EAGAIN;
}

static int by_turns(struct tb_lmv *lmv, uint32_t parent)
{
    for (uint32_t i = 0; i < tb_state->n_mdts; i++) {
        uint32_t mdt = (i + lmv->rr_index) % tb_state->n_mdts;

        if (!usable(mdt))
            continue;
        lmv->rr_index = (mdt + 1) % tb_state->n_mdts;
        return (int)mdt;
    }
    return (int)parent;
}

static int by_space(uint32_t parent, unsigned depth, bool rr, bool asked)
{
    struct qos qos = {.lmv = lmv_state()};
    int mdt;

    tb_lock();
    mdt = by_weight(&qos, parent, depth, rr);
    if (mdt == -EAGAIN) {
        if (qos.lmv->same_space && !rr && !asked && !(tb_state->mdt[parent].flags & MDT_NO_CREATE))
            mdt = (int)parent;
        else
            mdt = by_turns(qos.lmv, parent);
    }
    tb_unlock();
    return mdt;
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
    struct inherited at = {0};
    struct tb_place of_parent;
    const struct lmv_user_md *striping = asked;
    uint32_t there;
    unsigned depth;
    int mdt;
    bool rr;

    memset(place, 0, sizeof(*place));
    if (tb_state->n_mdts > 1)
        at = inherited(parent);
    place_load(parent, &of_parent);
    there = place_of_name(parent, name);
    mdt = (int)there;
    depth = at.inherit_depth ? at.inherit_depth : at.depth;
    rr = at.depth == 0 || (!asked && at.rr) || (at.set && at.dmv.lum_max_inherit_rr != LMV_INHERIT_RR_NONE);
    if (asked && asked->lum_stripe_offset != LMV_OFFSET_DEFAULT)
        mdt = specific(asked->lum_stripe_offset);
    else if (asked && of_parent.stripes < 2 && asked->lum_magic == LMV_USER_MAGIC)
        mdt = by_space(there, depth, rr, true);
    else if (!asked && at.set && at.dmv.lum_stripe_offset != LMV_OFFSET_DEFAULT)
        mdt = specific(at.dmv.lum_stripe_offset);
    else if (!asked && of_parent.stripes < 2 && (at.by_space || at.set) && !excluded(name))
        mdt = by_space(there, depth, rr, false);
    if (mdt >= 0 && (tb_state->mdt[mdt].flags & MDT_NO_CREATE))
        mdt = by_space(there, depth, rr, asked != NULL);
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
