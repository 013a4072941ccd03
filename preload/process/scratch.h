/* Room for one operation on a managed name, too large for a thread's stack. */
#pragma once

#include "core/map.h"
#include "core/template.h"

enum { TZ_NEAR_KEY = 512, TZ_NEAR_PATH = 512, TZ_NEAR_DIRECTORY = 1024 };

/*
 * Each member has one use, so that none is overwritten while another part of the same operation needs it. What is short
 * lies at the beginning: most operations touch no more than two pages.
 */
struct tz_scratch {
    int slot;                 /* -1: none, unmapped after use */
    const struct tz_map *map; /* atomic: the placement map that this operation reads, which must stay mapped */
    char near_key[TZ_NEAR_KEY];
    char near_asked[TZ_NEAR_PATH];
    _Alignas(16) char near_directory[TZ_NEAR_DIRECTORY];
    struct tz_names names;
    char raw[2 * TZ_PATH_MAX]; /* the directory of a relative path, put together */
    char key[TZ_KEY_MAX];
    char text[TZ_PATH_MAX];                            /* a directory as the kernel has it */
    _Alignas(16) uint8_t lov[XATTR_SIZE_MAX];          /* the layout that a file has */
    _Alignas(16) uint8_t request[XATTR_SIZE_MAX];      /* the layout that is asked for */
    char asked[TZ_PATH_MAX];                           /* a directory, NUL-terminated for the kernel */
    char opened[TZ_PATH_MAX];                          /* where standard output or error leads */
    _Alignas(16) char directory[64 + 2 * TZ_PATH_MAX]; /* a struct tz_dir that is being found out */
};

/* The place for `size` bytes: the near one where they fit. */
static inline char *tz_room(char *near, size_t near_size, char *far, size_t size)
{
    return size <= near_size ? near : far;
}

/* Gets one unless there is one at `scratch`; false when none is to be had. */
bool tz_scratch_need(struct tz_scratch **scratch);
void tz_scratch_put(struct tz_scratch *scratch);

/* Does an operation under way read this map? */
bool tz_scratch_holds(const struct tz_map *map);

void tz_scratch_forked(void);
