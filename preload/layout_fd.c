/* A layout on an open descriptor: set, read back, make its objects, replace what the MDS did not make. */
#include "place.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/xattr.h>

#define LUSTRE_LOV "lustre.lov"
/* LL_IOC_LOV_SETSTRIPE */
#define IOC_SETSTRIPE _IOW('f', 154, long)
#define KEEP_SIZE 1

int tz_layout_set_blob(int fd, void *blob, size_t length, bool composite)
{
    if (composite)
        return fsetxattr(fd, LUSTRE_LOV, blob, length, 0) ? errno : 0;
    return ioctl(fd, IOC_SETSTRIPE, blob) ? errno : 0;
}

int tz_layout_set(int fd, const struct tz_plan *plan, enum tz_request_lists lists, struct tz_scratch *scratch)
{
    size_t length = tz_lov_request(&plan->layout, plan->row.osts, plan->row.ost_count, 0, lists, scratch->request,
                                   sizeof scratch->request);

    if (length == 0)
        return EINVAL;
    return tz_layout_set_blob(fd, scratch->request, length, plan->layout.composite);
}

int tz_layout_read(int fd, struct tz_create *create)
{
    ssize_t n = fgetxattr(fd, LUSTRE_LOV, create->scratch->lov, sizeof create->scratch->lov);

    create->lov_length = n > 0 ? (uint32_t)n : 0;
    return n >= 0 ? 0 : errno;
}

/*
 * Makes the objects of all components up to the one that begins at `start`. Only a file that nobody else can have
 * opened may be truncated; otherwise a byte of space is reserved there, which loses no data of anyone.
 */
int tz_layout_instantiate(int fd, uint64_t start, bool alone)
{
    struct rlimit limit;

    if (start >= INT64_MAX)
        return EFBIG;
    /* Beyond this limit the kernel would send SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) || (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= start))
        return EFBIG;
    if (!alone)
        return fallocate(fd, KEEP_SIZE, (off_t)start, 1) ? errno : 0;
    if (ftruncate(fd, (off_t)start + 1))
        return errno;
    return ftruncate(fd, 0) && ftruncate(fd, 0) ? errno : 0;
}

/* lustre.lov.del of one component id, or of all components without the flags (negated). */
static int delete (int fd, uint32_t id, uint32_t flags)
{
    struct tz_lov lov = {.magic = TZ_LOV_COMPOSITE, .entries = 1, .size = TZ_LOV_HEAD + TZ_LOV_ENTRY + TZ_LOV_HEAD};
    struct tz_lov_entry entry = {.id = id,
                                 .flags = flags,
                                 .end = TZ_EOF,
                                 .magic = TZ_LOV_V1,
                                 .pattern = TZ_PATTERN_RAID0,
                                 .stripe_offset = TZ_OFFSET_ANY,
                                 .offset = TZ_LOV_HEAD + TZ_LOV_ENTRY,
                                 .size = TZ_LOV_HEAD};
    uint8_t blob[TZ_LOV_HEAD + TZ_LOV_ENTRY + TZ_LOV_HEAD];
    size_t length = tz_lov_encode(&lov, &entry, NULL, blob, sizeof blob);

    return fsetxattr(fd, LUSTRE_LOV ".del", blob, length, 0) ? errno : 0;
}

/* Deletes the entries from component `from` on, the last one first: the MDS allows no holes. */
static int delete_tail(int fd, const struct tz_create *create, const struct tz_plan *plan, uint16_t from)
{
    uint64_t start = plan->layout.components[from].start;
    const uint8_t *blob = create->scratch->lov;
    struct tz_lov_entry entry;
    struct tz_lov lov;
    int rc = tz_lov_check(blob, create->lov_length, &lov);

    for (uint32_t i = rc ? 0 : lov.entries; i-- > 0;) {
        rc = tz_lov_entry(blob, create->lov_length, i, &entry);
        if (rc || entry.start < start)
            return rc;
        rc = delete (fd, entry.id, 0);
        if (rc)
            return rc;
    }
    return rc;
}

static int add_tail(int fd, struct tz_scratch *scratch, const struct tz_plan *plan, uint16_t from,
                    enum tz_request_lists lists)
{
    size_t length = tz_lov_request(&plan->layout, plan->row.osts, plan->row.ost_count, from, lists, scratch->request,
                                   sizeof scratch->request);

    if (length == 0)
        return EINVAL;
    return fsetxattr(fd, LUSTRE_LOV ".add", scratch->request, length, 0) ? errno : 0;
}

/*
 * Components from `from` on get start hints, which fall back to other OSTs by themselves. ENODATA: they are deleted
 * and could not be added again.
 */
int tz_layout_replace_tail(int fd, struct tz_create *create, const struct tz_plan *plan, uint16_t from, bool alone)
{
    /* With others around only the MDS can tell which components are still without objects. */
    int rc = alone ? delete_tail(fd, create, plan, from) : delete (fd, 0, TZ_LCME_NEGATE | TZ_LCME_INIT);

    if (rc)
        return rc;
    if (add_tail(fd, create->scratch, plan, from, TZ_LISTS_NONE) == 0 ||
        add_tail(fd, create->scratch, plan, from, TZ_LISTS_ANYWHERE) == 0)
        return 0;
    return ENODATA;
}
