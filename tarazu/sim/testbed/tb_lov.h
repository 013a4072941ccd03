/* The testbed's codec of lustre.lov, for the emulated MDS and for the stand-in liblustreapi.
 *
 * It shares Lustre's facts with the preload library, and no code: what one of them gets wrong the other one sees.
 */
#ifndef TB_LOV_H
#define TB_LOV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../../preload/lustre.h"

struct lov_head {
    bool composite;
    uint32_t gen;
    uint16_t entries, mirrors;
};

/* A component; all of a plain layout. */
struct lov_part {
    uint64_t start, end;
    uint32_t id, flags, pattern, stripe_size;
    uint16_t stripe_count, offset;
    bool listed; /* the objects are a list of OSTs that is asked for */
    char pool[LOV_MAXPOOLNAME + 1];
    struct ost_id oi; /* of a plain layout's file */
    unsigned objects;
    const struct lov_user_ost_data_v1 *object; /* read: behind the part */
};

/* 0, or -EINVAL for what is no layout. */
int lov_read_head(const void *data, size_t size, struct lov_head *head);
int lov_read_part(const void *data, size_t size, unsigned i, struct lov_part *part);

/* How long the structure is that a caller of an ioctl passes, or, `answer`, has room for: it says so itself. */
size_t lov_passed_size(const void *data, bool answer);

/* Writing, part after part; without `out` nothing is written, and the size is counted. */
struct lov_writer {
    char *out;
    size_t capacity, size;
    struct lov_head head;
    unsigned written;
};

/* The attribute as fgetxattr shows it, without start indices (ll_sanitize_xattr): a copy of it lets the MDS choose. */
void lov_hide_starts(void *data);

struct lov_writer lov_begin(const struct lov_head *head, void *out, size_t capacity);

/* Returns where its objects, all 0, are to be filled in; NULL where nothing was written. */
struct lov_user_ost_data_v1 *lov_write(struct lov_writer *writer, const struct lov_part *part);

/* The length, or -ERANGE where the capacity was too small. */
ssize_t lov_end(const struct lov_writer *writer);

#endif
