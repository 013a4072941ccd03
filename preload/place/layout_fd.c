/* A layout on an open descriptor: set, read back, make its objects, replace what the MDS did not make. */
#include "place/layout_fd.h"
#include "base/rawsys.h"
#include "base/text.h"

#include <sys/resource.h>
#include <sys/xattr.h>

enum { KEEP_SIZE = 1 };

static size_t ask(const struct tz_plan *plan, enum tz_request_lists lists, struct tz_scratch *scratch)
{
    return tz_lov_request(&plan->layout, plan->row.osts, plan->row.ost_count, 0, lists, scratch->request,
                          sizeof scratch->request);
}

int tz_layout_set(int fd, const struct tz_plan *plan, enum tz_request_lists lists, struct tz_scratch *scratch)
{
    size_t length = ask(plan, lists, scratch);

    if (length == 0)
        return EINVAL;
    return fsetxattr(fd, XATTR_LUSTRE_LOV, scratch->request, length, 0) ? errno : 0;
}

void tz_layout_offer(int named, const struct tz_plan *plan, enum tz_request_lists lists, struct tz_scratch *scratch)
{
    struct tz_stat st;
    size_t length;
    char link[TZ_FD_LINK_MAX];

    tz_fd_link(named, link);
    /* Of a directory the same call would set the default. */
    if (tz_look(named, &st) || !S_ISREG(st.mode) || getxattr(link, XATTR_LUSTRE_LOV, NULL, 0) >= 0 || errno != ENODATA)
        return;
    length = ask(plan, lists, scratch);
    if (length)
        setxattr(link, XATTR_LUSTRE_LOV, scratch->request, length, 0);
}

int tz_layout_missing(int fd)
{
    return fgetxattr(fd, XATTR_LUSTRE_LOV, NULL, 0) < 0 ? errno : 0;
}

int tz_layout_read(int fd, struct tz_create *create)
{
    ssize_t n = fgetxattr(fd, XATTR_LUSTRE_LOV, create->scratch->lov, sizeof create->scratch->lov);

    create->lov_length = n > 0 ? (uint32_t)n : 0;
    return n >= 0 ? 0 : errno;
}

const struct tz_component *tz_layout_last_list(const struct tz_layout *layout)
{
    const struct tz_component *last = NULL;

    for (uint16_t i = 0; i < layout->count; i++)
        if (layout->components[i].flags & TZ_COMP_LIST)
            last = &layout->components[i];
    return last;
}

bool tz_layout_has_late_lists(const struct tz_layout *layout)
{
    const struct tz_component *last = tz_layout_last_list(layout);

    return last && last->start > 0;
}

bool tz_layout_can_instantiate(const struct tz_layout *layout)
{
    const struct tz_component *last = tz_layout_last_list(layout);

    for (uint16_t i = 0; i < layout->count; i++)
        if (layout->components[i].flags & TZ_COMP_SEL)
            return false; /* it would extend the component before, too */
    return last && last->start < INT64_MAX && last->start + 1 <= tz_size_limit();
}

static int reserve(int fd, uint64_t offset)
{
    int rc = 0;

    for (int i = 0; i < 3; i++) {
        rc = fallocate(fd, KEEP_SIZE, (off_t)offset, 1) ? errno : 0;
        if (rc != EINTR)
            break;
    }
    return rc;
}

/*
 * Makes the objects of all components up to the last with a list. Never by truncating, and never by punching a hole:
 * other processes may have the file open and have written at any offset. A byte of space is reserved, which changes no
 * byte of anyone, nor the size; it is the first byte of that component's, which a file that reaches it needs anyway.
 */
int tz_layout_instantiate(int fd, const struct tz_layout *layout)
{
    return tz_layout_can_instantiate(layout) ? reserve(fd, tz_layout_last_list(layout)->start) : EFBIG;
}

int tz_layout_delete_late(int fd, struct tz_scratch *scratch)
{
    size_t length = tz_lov_deletion(scratch->request, sizeof scratch->request);

    return fsetxattr(fd, XATTR_LUSTRE_LOV ".del", scratch->request, length, 0) ? errno : 0;
}

static int add_tail(int fd, struct tz_scratch *scratch, const struct tz_plan *plan, uint16_t from,
                    enum tz_request_lists lists)
{
    size_t length = tz_lov_request(&plan->layout, plan->row.osts, plan->row.ost_count, from, lists, scratch->request,
                                   sizeof scratch->request);

    if (length == 0)
        return EINVAL;
    return fsetxattr(fd, XATTR_LUSTRE_LOV ".add", scratch->request, length, 0) ? errno : 0;
}

/* One component from there to the end, of the file system's own kind: no pool, no hint, nothing to refuse. */
static int add_plain(int fd, struct tz_scratch *scratch, const struct tz_plan *plan, uint16_t from)
{
    struct tz_component rest = {.start = plan->layout.components[from].start,
                                .end = LUSTRE_EOF,
                                .stripe_size = plan->layout.components[from].stripe_size,
                                .stripe_count = 1,
                                .pattern = LOV_PATTERN_RAID0};
    struct tz_plan plain = {.layout = {.components = &rest, .count = 1, .composite = true}};

    return add_tail(fd, scratch, &plain, 0, TZ_LISTS_ANYWHERE);
}

int tz_layout_add_tail(int fd, struct tz_scratch *scratch, const struct tz_plan *plan, uint16_t from)
{
    int rc = EINVAL;

    for (uint16_t i = from; i < plan->layout.count; i++)
        if (add_tail(fd, scratch, plan, i, TZ_LISTS_NONE) == 0 ||
            add_tail(fd, scratch, plan, i, TZ_LISTS_ANYWHERE) == 0)
            return 0;
    for (uint16_t i = from; i < plan->layout.count; i++) {
        rc = add_plain(fd, scratch, plan, i);
        if (rc == 0)
            return 0;
    }
    return rc;
}
