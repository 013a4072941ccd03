/* The ioctls on a directory's descriptor that say, or ask, on which MDTs directories lie (llite/dir.c, and what the MDT
 * checks: mdt_reint.c). */
#include "tb.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_BUFFER (XATTR_SIZE_MAX + 8192)

static size_t aligned(uint32_t size)
{
    return ((size_t)size + 7) & ~(size_t)7;
}

/* What was handed over: the name and what is asked for. */
static int unpack(const struct obd_ioctl_data *data, const char **name, const struct lmv_user_md **lum, size_t *size)
{
    if (data->ioc_version != OBD_IOCTL_VERSION || data->ioc_len > MAX_BUFFER || data->ioc_len < sizeof(*data))
        return -EINVAL;
    if (data->ioc_inllen1 >= MAX_BUFFER || data->ioc_inllen2 >= MAX_BUFFER || data->ioc_inllen3 >= MAX_BUFFER ||
        data->ioc_inllen4 >= MAX_BUFFER)
        return -EINVAL;
    if ((data->ioc_inlbuf1 && !data->ioc_inllen1) || (data->ioc_inlbuf2 && !data->ioc_inllen2) ||
        (data->ioc_inlbuf3 && !data->ioc_inllen3) || (data->ioc_inlbuf4 && !data->ioc_inllen4) ||
        !data->ioc_pbuf1 != !data->ioc_plen1 || !data->ioc_pbuf2 != !data->ioc_plen2)
        return -EINVAL;
    if (sizeof(*data) + aligned(data->ioc_inllen1) + aligned(data->ioc_inllen2) + aligned(data->ioc_inllen3) +
            aligned(data->ioc_inllen4) >
        data->ioc_len)
        return -EINVAL;
    if (data->ioc_inllen1 < 1 || data->ioc_inllen2 == 0)
        return -EINVAL;
    if (data->ioc_inllen1 > NAME_MAX + 1)
        return -ENAMETOOLONG;
    if (data->ioc_inllen2 > XATTR_SIZE_MAX)
        return -EOVERFLOW;
    *name = data->ioc_bulk;
    if (strnlen(*name, data->ioc_inllen1) + 1 != data->ioc_inllen1)
        return -EINVAL;
    *lum = (const struct lmv_user_md *)(data->ioc_bulk + aligned(data->ioc_inllen1));
    *size = data->ioc_inllen2;
    return 0;
}

static int check(const struct lmv_user_md *lum, size_t size)
{
    if (size < sizeof(uint32_t) || (lum->lum_magic != LMV_USER_MAGIC && lum->lum_magic != LMV_USER_MAGIC_SPECIFIC))
        return lum->lum_magic == LMV_MAGIC_FOREIGN && size >= sizeof(uint32_t) ? -EOPNOTSUPP : -EINVAL;
    if (size < sizeof(*lum))
        return -EINVAL;
    if (lum->lum_stripe_count > LMV_MAX_STRIPE_COUNT || lum->lum_stripe_count < LMV_OVERSTRIPE_COUNT_MAX)
        return -EOVERFLOW;
    if (lum->lum_hash_type & ~LMV_HASH_TYPE_MASK & ~LMV_HASH_FLAG_KNOWN)
        return -EINVAL;
    if (lum->lum_magic == LMV_USER_MAGIC_SPECIFIC &&
        (lum->lum_stripe_count < 0 ||
         size < sizeof(*lum) + (size_t)lum->lum_stripe_count * sizeof(lum->lum_objects[0])))
        return -EINVAL;
    return 0;
}

/* What is made in it stays on its MDT, unless whoever asks for the directory says that nothing is inherited. */
static void keep_below(struct tb_place *place, const struct lmv_user_md *lum)
{
    if (lum->lum_stripe_count >= 2 || lum->lum_max_inherit == LMV_INHERIT_NONE)
        return;
    place->has_default = 1;
    place->dmv = (struct lmv_user_md){.lum_magic = LMV_USER_MAGIC,
                                      .lum_stripe_count = lum->lum_stripe_count == 1 ? 0 : lum->lum_stripe_count,
                                      .lum_stripe_offset = place->mdt,
                                      .lum_hash_type = lum->lum_hash_type,
                                      .lum_max_inherit = lum->lum_max_inherit,
                                      .lum_max_inherit_rr = lum->lum_max_inherit_rr};
}

static int make(int fd, const char *name, const struct lmv_user_md *lum, mode_t mode)
{
    struct tb_place place;
    struct stat st;
    int mdt = lmv_choose(fd, name, lum, &place), made, rc;

    if (mdt < 0)
        return mdt;
    if ((rc = mdt_wait((uint32_t)mdt)) || (rc = mdt_wait(place_of_name(fd, name))))
        return rc;
    if (lum->lum_stripe_count > 1 && !mdt_parameter((uint32_t)mdt, "enable_striped_dir", 1))
        return -EPERM;
    if (mdt_denies((uint32_t)mdt))
        return -EPERM;
    if (syscall(SYS_newfstatat, fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    tb_lock();
    rc = syscall(SYS_mkdirat, fd, name, mode & 01777) == 0 ? 0 : -errno;
    if (rc == 0 && (made = (int)syscall(SYS_openat, fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) >= 0) {
        sidecar_inherit(made);
        keep_below(&place, lum);
        rc = place_store(made, &place);
        real_close(made);
    }
    tb_unlock();
    if (rc == 0)
        mdt_count((uint32_t)mdt, MD_MKDIR, 1);
    return rc;
}

/* LL_IOC_LMV_SETSTRIPE: makes a directory where it is asked for. */
int lmv_set_stripe(int fd, const void *argument)
{
    const struct obd_ioctl_data *data = argument;
    const struct lmv_user_md *lum;
    struct stat st;
    const char *name;
    size_t size;
    int rc = unpack(data, &name, &lum, &size);

    if (rc == 0)
        rc = check(lum, size);
    if (rc)
        return rc;
    if (fstat(fd, &st) != 0 || st.st_nlink == 0)
        return -ENOENT;
    if (!*name || strchr(name, '/'))
        return -EINVAL;
    return make(fd, name, lum, data->ioc_type);
}

/* LL_IOC_LMV_GETSTRIPE: by the magic that is passed in the default of directories made in it, or its own stripes, for
 * as many of which the caller has room as it says. */
int lmv_get_stripe(int fd, struct lmv_user_md *out)
{
    struct tb_place place;

    if (out->lum_magic == LMV_USER_MAGIC && out->lum_type != LMV_TYPE_RAW)
        return lmv_default(fd, out);
    place_load(fd, &place);
    if (out->lum_magic == LMV_USER_MAGIC) {
        if (!place.has_default)
            return -ENODATA;
        *out = place.dmv;
        return 0;
    }
    if (out->lum_magic != LMV_MAGIC_V1)
        return -EINVAL;
    if (place.stripes < 2)
        return -ENODATA;
    if (out->lum_stripe_count < (int)place.stripes) {
        out->lum_stripe_count = (int)place.stripes;
        return -E2BIG;
    }
    memset(out, 0, sizeof(*out) + place.stripes * sizeof(out->lum_objects[0]));
    out->lum_magic = LMV_MAGIC_V1;
    out->lum_stripe_count = (int)place.stripes;
    out->lum_stripe_offset = place.mdt;
    out->lum_hash_type = place.hash_type;
    for (unsigned i = 0; i < place.stripes; i++) {
        struct stat st = {0};

        fstat(fd, &st);
        out->lum_objects[i].lum_mds = place.stripe_mdt[i];
        out->lum_objects[i].lum_fid =
            (struct lu_fid){.f_seq = 0x200000401u + 0x40000000ull * place.stripe_mdt[i], .f_oid = (uint32_t)st.st_ino};
    }
    return 0;
}

/* LL_IOC_LMV_SET_DEFAULT_STRIPE; with nothing but defaults there is none any more. */
int lmv_set_default(int fd, const struct lmv_user_md *lum)
{
    struct tb_place place;
    struct stat st;
    uint32_t mdt;
    int rc;

    if (lum->lum_magic != LMV_USER_MAGIC)
        return -EINVAL;
    if (fstat(fd, &st) != 0)
        return -errno;
    place_load(fd, &place);
    mdt = place.mdt;
    rc = mdt_wait(mdt);
    if (rc)
        return rc;
    if (!mdt_parameter(mdt, "enable_striped_dir", 1) || mdt_denies(mdt))
        return -EPERM;
    if (geteuid() != 0 && geteuid() != st.st_uid)
        return -EPERM;
    if (lum->lum_stripe_offset != LMV_OFFSET_DEFAULT && lum->lum_stripe_offset >= tb_state->n_mdts)
        return -EINVAL;
    memcpy(&place.dmv, lum, sizeof(*lum));
    place.has_default =
        lum->lum_stripe_offset != LMV_OFFSET_DEFAULT || lum->lum_stripe_count != 0 || lum->lum_hash_type != 0;
    tb_lock();
    rc = place_store(fd, &place);
    tb_unlock();
    return rc;
}
