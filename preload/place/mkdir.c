/*
 * Making a directory on a given MDT, by the ioctl of `lfs mkdir` on its parent. Whatever speaks against it, the
 * program's own call is made, and answers. The ioctl does not look at all that mkdir looks at: that is done here first.
 */
#include "place/mkdir.h"
#include "base/rawsys.h"
#include "lustre.h"

enum {
    NOT_OURS = -1,
    LONGEST_NAME = 255,
    NAME_ROOM = 256,
    OBD_FL_OBDMDEXISTS = 2, /* only make it: a directory that is there is left as it is */
    OBDO_FLAGS = 96,        /* where o_flags lies in a struct obdo */
    ENOTSUPP_ = 524,        /* the kernel's own, which a server may send */
};

/* The last part of the path, cut out of `text`, which then is its directory; NULL where that is none or "." or "..". */
static const char *cut(const char *path, char *text, const char **parent)
{
    size_t length = strlen(path);
    char *slash, *name;

    while (length && path[length - 1] == '/')
        length--;
    if (length == 0 || length >= TZ_PATH_MAX)
        return NULL;
    memcpy(text, path, length);
    text[length] = '\0';
    slash = memrchr(text, '/', length);
    name = slash ? slash + 1 : text;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || text + length - name > LONGEST_NAME)
        return NULL;
    *parent = !slash ? "." : slash == text ? "/" : text;
    if (slash)
        *slash = '\0';
    return name;
}

static uint64_t mounted_dev(struct tz_mount *mount)
{
    uint64_t dev = tz_load(&mount->dev);
    struct tz_stat st;
    int fd;

    if (dev)
        return dev;
    fd = tz_sys_open(mount->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    if (tz_look(fd, &st) == 0)
        tz_store(&mount->dev, dev = st.dev);
    tz_sys_close(fd);
    return dev;
}

/*
 * 0 where a directory may be made in `parent`, and it lies where the map says: paths may lead elsewhere by now, and the
 * number of an MDT means something else on another file system.
 */
static int examine(const struct tz_create *c, int parent)
{
    struct tz_stat st;

    if (tz_look(parent, &st) || st.dev != mounted_dev(c->where.mount))
        return NOT_OURS;
    return syscall(SYS_faccessat, parent, ".", W_OK | X_OK) ? errno : 0; /* EROFS is mkdir's to say */
}

/*
 * NOT_OURS where somebody has said where directories in `parent` go, or over how many MDTs they are striped: by the
 * default that is in force there, which the client knows (older ones ask); one that only tells Lustre to balance says
 * nothing. Any other error than that there is none speaks against it too: so does a file system that is not Lustre.
 */
static int is_open(int parent)
{
    struct lmv_user_md lum = {.lum_magic = LMV_USER_MAGIC};

    if (ioctl(parent, LL_IOC_LMV_GETSTRIPE, &lum))
        return errno == ENODATA ? 0 : errno;
    return lum.lum_stripe_count < 0 || lum.lum_stripe_count > 1 || lum.lum_stripe_offset != LMV_OFFSET_DEFAULT
               ? NOT_OURS
               : 0;
}

static size_t rounded(size_t length)
{
    return (length + 7) & ~(size_t)7;
}

/* Without a word of inheritance a server (since 2.15) would keep all that is ever made below on the same MDT. */
static int set_stripe(struct tz_scratch *scratch, int parent, const char *name, mode_t mode, uint16_t mdt)
{
    struct lmv_user_md lum = {.lum_magic = LMV_USER_MAGIC,
                              .lum_stripe_count = 1,
                              .lum_stripe_offset = mdt,
                              .lum_hash_type = LMV_HASH_TYPE_FNV_1A_64,
                              .lum_max_inherit = LMV_INHERIT_NONE};
    size_t length = strlen(name) + 1, second = rounded(length);
    union {
        struct obd_ioctl_data data;
        uint8_t room[sizeof(struct obd_ioctl_data) + NAME_ROOM + sizeof(struct lmv_user_md)];
    } *packed = (void *)scratch->request;

    memset(packed, 0, sizeof *packed);
    packed->data.ioc_version = OBD_IOCTL_VERSION;
    packed->data.ioc_len = (uint32_t)(sizeof packed->data + second + sizeof lum);
    tz_put32(packed->data.ioc_obdo1 + OBDO_FLAGS, OBD_FL_OBDMDEXISTS);
    packed->data.ioc_type = mode;
    packed->data.ioc_inllen1 = (uint32_t)length;
    packed->data.ioc_inllen2 = sizeof lum;
    memcpy(packed->room + sizeof packed->data, name, length);
    memcpy(packed->room + sizeof packed->data + second, &lum, sizeof lum);
    return ioctl(parent, LL_IOC_LMV_SETSTRIPE, packed) ? errno : 0;
}

/* The MDT that it lies on: Lustre takes another one, and says nothing, where that one makes none (`no_create`). */
static uint16_t lies_on(int parent, const char *name, uint16_t asked)
{
    int fd = (int)syscall(SYS_openat, parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    int mdt, index = -1;

    if (fd < 0)
        return asked;
    mdt = ioctl(fd, LL_IOC_GET_MDTIDX, &index);
    tz_sys_close(fd);
    if (mdt < index)
        mdt = index;
    return mdt >= 0 && mdt <= UINT16_MAX ? (uint16_t)mdt : asked;
}

/* 0, else the errno that speaks against it, or NOT_OURS. Says in `c` where it lies that was made. */
static int make_on(struct tz_create *c, uint16_t mdt)
{
    const char *parent, *name = cut(c->call.path, c->scratch->opened, &parent);
    int fd, error;
    char link[1];

    if (!name)
        return NOT_OURS;
    /* Who finds it there, as most ranks do that want to make the same, needs only a look at the name. */
    if (syscall(SYS_readlinkat, c->call.dirfd, c->call.path, link, sizeof link) >= 0 || errno == EINVAL)
        return EEXIST;
    if (errno != ENOENT)
        return errno;
    fd = (int)syscall(SYS_openat, c->call.dirfd, parent, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    error = examine(c, fd);
    if (error == 0)
        error = is_open(fd);
    if (error == 0)
        error = set_stripe(c->scratch, fd, name, c->call.mode, mdt);
    if (error == 0)
        c->mdt = lies_on(fd, name, mdt);
    tz_sys_close(fd);
    return error;
}

/* It will not be otherwise for the next directory. */
static bool is_for_good(int error)
{
    return error == EPERM || error == ENOTTY || error == EOPNOTSUPP || error == ENOTSUPP_;
}

int tz_place_mkdir(struct tz_create *c, uint16_t mdt)
{
    struct tz_mount *mount = c->where.mount;
    int saved = errno, error = (int)tz_load(&mount->no_mdts), result;
    bool tried = error == 0;

    if (tried) {
        error = make_on(c, mdt);
        tz_mount_doubt(mount, error);
    }
    errno = saved;
    if (error == 0) {
        if (c->mdt != mdt) {
            c->outcome = TZ_REFUSED;
            c->refusal = ENODEV;
        }
        return 0;
    }
    result = tz_call_mkdir(&c->call);
    if (error == NOT_OURS || tz_load(&mount->foreign))
        c->outcome = TZ_SKIPPED;
    else if (error == EEXIST && result)
        c->outcome = TZ_RACED;
    else {
        c->outcome = TZ_REFUSED;
        c->refusal = (uint16_t)error;
    }
    /* A directory in which nobody may make anything, an immutable one, says nothing of others. */
    if (tried && is_for_good(error) && !(result && errno == error))
        tz_store(&mount->no_mdts, (uint32_t)error);
    return result;
}
