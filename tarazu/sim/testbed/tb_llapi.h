/* The part of liblustreapi.so.1 that the stand-in has, with the real signatures (lustreapi.h of 2.12-2.17).
 *
 * llapi_layout.c  the layout object and its components
 * llapi_sanity.c  what makes a layout sane
 * llapi_blob.c    the layout object to lustre.lov and back (lov.c: the attribute itself)
 * llapi_file.c    files: the only part that reaches the file system, by open() and fsetxattr() as the real one does
 */
#ifndef TB_LLAPI_H
#define TB_LLAPI_H

#include "tb_lov.h"

#define PUBLIC __attribute__((visibility("default")))

#define LLAPI_MAX_COMPS 64

struct llapi_comp {
    uint64_t start, end, stripe_size, stripe_count, offset, pattern;
    uint32_t id, flags;
    unsigned n_objects;
    char pool[LOV_MAXPOOLNAME + 1];
    uint32_t *objects; /* OST indices; LLAPI_LAYOUT_IDX_MAX = not set */
};

struct llapi_layout {
    uint32_t magic;
    bool composite;
    unsigned n_comps, current;
    struct llapi_comp comp[LLAPI_MAX_COMPS];
};

#define LLAPI_LAYOUT_MAGIC 0x11AD1107u

/* llapi_layout.c */
struct llapi_comp *llapi_current(const struct llapi_layout *layout);
int llapi_objects(struct llapi_comp *comp, unsigned count);
struct llapi_layout *llapi_layout_alloc(void);
void llapi_layout_free(struct llapi_layout *layout);

/* llapi_sanity.c */
int llapi_layout_sanity(struct llapi_layout *layout, bool incomplete, bool flr);
void llapi_layout_sanity_perror(int error);

/* llapi_blob.c */
void *llapi_to_lum(const struct llapi_layout *layout, ssize_t *size);
struct llapi_layout *llapi_layout_get_by_xattr(void *xattr, ssize_t size, int flags);

#endif
