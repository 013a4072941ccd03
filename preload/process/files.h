/* What is known of open descriptors: files opened for writing on a managed mount, and directories. */
#pragma once

#include "process/mounts.h"

enum { TZ_FDS_MAX = 1 << 20, TZ_FIRST_FDS = 64, TZ_INLINE_KEY = 336 };

enum tz_file_flags {
    TZ_FILE_DIRECTORY = 1, /* not a file: `key` is the directory's path */
    TZ_FILE_CREATED = 2,   /* this open made the file */
    TZ_FILE_APPEND = 4,
    TZ_FILE_INHERITED = 8, /* opened by the parent of a fork */
    TZ_FILE_NOTED = 32,    /* its create record is the node's */
    TZ_FILE_ADOPTED = 16,  /* standard output or error, opened by the program before this one */
};

/*
 * One open file description, shared by the descriptors that dup made of it. Counters are atomic. Another thread may
 * close its last descriptor at any moment: whoever reads one holds a reference meanwhile.
 */
struct tz_file {
    uint32_t refs;        /* atomic: of descriptors and of those who read it; 0: free */
    uint32_t descriptors; /* atomic */
    uint32_t flags;
    struct tz_mount *mount;
    uint64_t ino; /* 0 when unknown */
    uint64_t opened_ns, opened_size;
    uint64_t end; /* where the last byte will lie when what a stream holds is written */
    uint64_t bytes, low, high, writes, segments, last_end, position;
    uint32_t key_length;
    char *long_key; /* pages of its own, for a key that does not fit */
    char key[TZ_INLINE_KEY];
};

extern uint32_t tz_files_beyond;                           /* atomic: no descriptor from here on is followed */
extern struct tz_file *tz_files_first[TZ_FIRST_FDS];       /* atomic */
extern struct tz_file **tz_files_table[TZ_FDS_MAX / 1024]; /* atomic: of those beyond */

/* What stands for the file behind a descriptor; NULL for the descriptors that are not followed. */
static inline const struct tz_file *tz_files_get(int fd)
{
    struct tz_file **chunk;

    if ((unsigned)fd >= tz_relaxed(&tz_files_beyond))
        return NULL;
    if (tz_likely((unsigned)fd < TZ_FIRST_FDS))
        return tz_load(&tz_files_first[fd]);
    chunk = tz_load(&tz_files_table[(unsigned)fd >> 10]);
    return tz_likely(!chunk) ? NULL : tz_load(&chunk[fd & 1023]);
}

/* The file behind a descriptor, with a reference for the caller (tz_file_put); NULL where it is not followed. */
struct tz_file *tz_files_hold(int fd);

static inline const char *tz_file_key(const struct tz_file *file)
{
    return file->long_key ? file->long_key : file->key;
}

/*
 * A new description that no descriptor stands for yet, with a reference for the caller; NULL when there is no room.
 * What else is known of it is set before tz_files_share: from then on other threads read it.
 */
struct tz_file *tz_file_new(uint32_t flags, struct tz_mount *mount, const char *key, size_t length);

/* `fd` now stands for the description `of`, to which the caller has a reference. */
void tz_files_share(int fd, struct tz_file *of);

/* Takes the descriptor out of the table; the caller has its reference then. `last`: no other stands for the file. */
struct tz_file *tz_files_take(int fd, bool *last);

void tz_file_put(struct tz_file *file);

/* Calls for every followed descriptor in [first, last]. */
void tz_files_each(unsigned first, unsigned last, void (*call)(int fd));

/* The directory that a descriptor stands for: its length, 0 when not known. */
size_t tz_files_directory(int fd, char *out, size_t size);

/*
 * What the kernel says that it stands for, asked after tz_files_replacements gave `before`: a dup2 in between may have
 * made it stand for another.
 */
void tz_files_set_directory(int fd, const char *path, size_t length, uint32_t before);
uint32_t tz_files_replacements(void);

/* dup2 or dup3 has put another file at `fd`: the directory that another thread has just asked for is forgotten. */
void tz_files_replaced(int fd);

/* Counts `count` bytes written at `offset`. */
void tz_file_wrote(struct tz_file *file, uint64_t offset, uint64_t count);

void tz_files_forked(void);
