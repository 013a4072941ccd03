/* What the files of the client's choice of an MDT share: lmv_default.c, lmv_space.c, lmv.c. */
#ifndef LMV_H
#define LMV_H

#include "tb.h"

/* The default of one directory, and how deep it lies. */
struct lmv_inherited {
    bool set, rr, by_space; /* rr, by_space: what the file system's default says of a directory without one */
    unsigned depth, inherit_depth;
    struct lmv_user_md dmv;
};

/* Of an open directory; one whose way cannot be walked inherits nothing. */
struct lmv_inherited lmv_inherited(int fd);

/* The MDT of a new directory by free space and inodes, or in turn. */
int lmv_by_space(uint32_t parent, unsigned depth, bool rr, bool asked);

/* A parameter `lmv.*.name` of this client: how many bytes, or -1. */
ssize_t lmv_parameter(const char *name, char *text, size_t size);

#endif
