/* The part of liblustreapi.so.1 that the stand-in has, with the real signatures (lustreapi.h of 2.12-2.17).
 *
 * The stand-in reaches the file system only by open(), ioctl() and fsetxattr(), as the real one does.
 */
#ifndef TB_LLAPI_H
#define TB_LLAPI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PUBLIC __attribute__((visibility("default")))

#define LLAPI_INVALID 0x1000000000000001ULL
#define LLAPI_DEFAULT (LLAPI_INVALID + 1)
#define LLAPI_WIDE_MIN (LLAPI_DEFAULT + 1)
#define LLAPI_WIDE_MAX (LLAPI_DEFAULT + 32)
#define LLAPI_RAID0 0x0ULL
#define LLAPI_MDT 0x2ULL
#define LLAPI_OVERSTRIPING 0x4ULL
#define LLAPI_SPECIFIC 0x2000000000000000ULL
#define LLAPI_IDX_MAX 0xFFFFFFFFULL
#define LLAPI_EOF UINT64_MAX
#define LLAPI_MAX_STRIPES 2000
#define LLAPI_MAX_COMPS 64
#define LLAPI_POOL 16

#define LUM_V1 0x0BD10BD0u
#define LUM_V3 0x0BD30BD0u
#define LUM_SPECIFIC 0x0BD50BD0u
#define LUM_COMP 0x0BD60BD0u
#define LCME_INIT 0x10u
#define LCME_EXTENSION 0x40u
#define LCME_NEG 0x80000000u
#define DELAY_CREATE (0400 | 020000)
#define XATTR_LOV "lustre.lov"

struct llapi_comp {
    uint64_t start, end, stripe_size, stripe_count, offset, pattern;
    uint32_t id, flags;
    unsigned n_objects;
    char pool[LLAPI_POOL];
    uint32_t *objects; /* OST indices; LLAPI_IDX_MAX = not set */
};

struct llapi_layout {
    uint32_t magic;
    bool composite;
    uint32_t gen, flags;
    unsigned n_comps, current;
    struct llapi_comp comp[LLAPI_MAX_COMPS];
};

#define LLAPI_LAYOUT_MAGIC 0x11AD1107u

struct llapi_comp *llapi_current(const struct llapi_layout *layout);
int llapi_objects(struct llapi_comp *comp, unsigned count);
void *llapi_to_lum(const struct llapi_layout *layout, size_t *size);

struct lov_user_md;
struct lu_fid;
struct llapi_layout *llapi_layout_alloc(void);
void llapi_layout_free(struct llapi_layout *layout);
struct llapi_layout *llapi_layout_get_by_fd(int fd, int flags);
struct llapi_layout *llapi_layout_get_by_xattr(void *xattr, ssize_t size, int flags);
int llapi_layout_set_by_fd(int fd, struct llapi_layout *layout);
int llapi_layout_pool_name_set(struct llapi_layout *layout, const char *name);
int llapi_layout_ost_index_set(struct llapi_layout *layout, int stripe, uint64_t index);
int llapi_layout_sanity(struct llapi_layout *layout, bool incomplete, bool flr);
void llapi_layout_sanity_perror(int error);
void llapi_error(int level, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
