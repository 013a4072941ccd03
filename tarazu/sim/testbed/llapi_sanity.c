/* Stand-in liblustreapi: what makes a layout sane, before it is sent anywhere. */
#include "tb_llapi.h"

#include <errno.h>
#include <stdio.h>

enum { SANE, FLAGS = 4, DOM_FIRST = 7, ZERO_LENGTH = 11, NOT_ADJACENT, START_GT_END, ALIGN_END, ALIGN_EXTENSION };

static const char *const reasons[] = {
    [FLAGS] = "Invalid component flags",
    [DOM_FIRST] = "A component on the MDT must be the first",
    [ZERO_LENGTH] = "A component must not be empty",
    [NOT_ADJACENT] = "The component must begin where the one before ends",
    [START_GT_END] = "The component begins behind its end",
    [ALIGN_END] = "The component end must be aligned by the stripe size",
    [ALIGN_EXTENSION] = "The extension size must be aligned by the stripe size",
};

static int check(const struct llapi_layout *layout, unsigned i, bool incomplete)
{
    const struct llapi_comp *comp = &layout->comp[i], *before = i ? comp - 1 : NULL;
    bool extended = i + 1 < layout->n_comps && (comp[1].flags & LCME_FL_EXTENSION);

    if (comp->id == 0 && (comp->flags & ~(LCME_FL_EXTENSION | LCME_FL_PREF_RW)) && !incomplete)
        return FLAGS;
    if ((comp->flags & LCME_FL_EXTENSION) && !before)
        return FLAGS;
    if ((comp->pattern & ~LLAPI_LAYOUT_SPECIFIC) == LLAPI_LAYOUT_MDT && before)
        return DOM_FIRST;
    if (before && comp->start != before->end)
        return NOT_ADJACENT;
    if (comp->start > comp->end)
        return START_GT_END;
    if (incomplete)
        return SANE;
    if (comp->start == comp->end && !extended)
        return ZERO_LENGTH;
    if (comp->flags & LCME_FL_EXTENSION)
        return before->stripe_size != LLAPI_LAYOUT_DEFAULT && comp->stripe_size * SEL_UNIT_SIZE % before->stripe_size
                   ? ALIGN_EXTENSION
                   : SANE;
    if (comp->stripe_size != LLAPI_LAYOUT_DEFAULT && comp->end != LUSTRE_EOF && comp->end != comp->start &&
        comp->end % comp->stripe_size)
        return ALIGN_END;
    return SANE;
}

/* 0, or a number for llapi_layout_sanity_perror. */
PUBLIC int llapi_layout_sanity(struct llapi_layout *layout, bool incomplete, bool flr)
{
    (void)flr;
    if (!llapi_current(layout))
        return -1;
    for (unsigned i = 0; layout->composite && i < layout->n_comps; i++) {
        int rc = check(layout, i, incomplete);

        if (rc) {
            errno = EINVAL;
            return rc;
        }
    }
    return 0;
}

PUBLIC void llapi_layout_sanity_perror(int error)
{
    const int known = (int)(sizeof(reasons) / sizeof(*reasons));

    if (error > 0 && error < known && reasons[error])
        fprintf(stderr, "%s\n", reasons[error]);
    else
        fprintf(stderr, "Invalid layout\n");
}
