/* The testbed's kernel client and MDS in one library: what its files share.
 *
 * state.c    the emulated MDS: an mmapped file shared by all processes, under a robust lock
 * lsa.c      Lustre's allocator (lsa_weighted.c: its weighted half)
 * blob.c     struct tb_layout to lustre.lov and back (lov.c: the attribute itself)
 * layout.c   setting and changing layouts, and instantiating what a write reaches (layout_check.c: what is accepted)
 * sidecar.c  where a file's layout is kept
 * mdts.c     MDTs: on which one a directory lies, what each has done, one that is away
 * lmv.c      on which MDT the client makes a directory (lmv_default.c: what it inherits; lmv_space.c: by what is free)
 * disk.c     disks that take time
 * files.c    which descriptors and paths lie in the mount
 * hooks_*.c  the interposed functions
 * control.c  what the testbed's Python side calls (control_pools.c: about pools)
 */
#ifndef TB_H
#define TB_H

#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "tb_lov.h"

#define TB_MAX_OSTS 1024
#define TB_MAX_OSSS 256
#define TB_MAX_POOLS 16
#define TB_MAX_STRIPES 1024
#define TB_MAX_COMPS 32

/* ---- the MDS's memory, in TB/mds/state ---- */
enum { OST_INACTIVE = 1, OST_NO_CREATE = 2, OST_DEGRADED = 4, OST_READONLY = 8, OST_FULL = 16, OST_DEAD = 32 };

struct tb_ost {
    uint64_t total, base, used;                         /* bytes; base = filled before, used = by files in the mount */
    uint64_t penalty, penalty_per_obj, weight, weighed; /* weighed: what was available then */
    int64_t last_used;
    uint32_t flags, oss, next_oid, usable;
    uint64_t disk_rate; /* bytes per second; 0: its disk takes no time */
    int64_t disk_until; /* the disk is busy until then: CLOCK_MONOTONIC, ns */
};

struct tb_oss {
    uint64_t avail, penalty, penalty_per_obj;
    int64_t last_used;
    uint32_t targets, pad;
};

struct tb_rr {
    uint32_t start_idx, offset_idx;
    int32_t start_count;
    uint32_t count, dirty;
    uint16_t members[TB_MAX_OSTS], order[TB_MAX_OSTS];
};

struct tb_pool {
    char name[LOV_MAXPOOLNAME + 1], spill_target[LOV_MAXPOOLNAME + 1];
    uint32_t spill_pct; /* 0: never */
    struct tb_rr rr;
};

/* Requests that a client's calls would send, counted as measured on a real Lustre. */
enum tb_request {
    TO_MDS_OPEN,
    TO_MDS_CLOSE,
    TO_MDS_LAYOUT,
    TO_MDS_SETXATTR,
    TO_MDS_GETATTR,
    TO_MDS_GETXATTR,
    TO_MDS_CANCEL,
    TO_OST,
    TB_REQUESTS
};

/* ---- MDTs ---- */
#define TB_MAX_MDTS 16
#define TB_MAX_MDT_CLIENTS 64 /* whose requests are counted apart; those of others count as nobody's */
#define TB_MAX_DIR_STRIPES 32

enum { MDT_INACTIVE = 1, MDT_NO_CREATE = 2, MDT_AWAY = 4 };

/* Rows of md_stats. */
enum tb_md { MD_OPEN, MD_CLOSE, MD_MKNOD, MD_UNLINK, MD_MKDIR, MD_RMDIR, MD_RENAME, TB_MD_OPS };

struct tb_mdt {
    uint64_t total, base, files_total, files_base; /* bytes and inodes; base = used before */
    int64_t directories, files;                    /* made since; atomic */
    uint64_t done[TB_MAX_MDT_CLIENTS + 1][TB_MD_OPS];
    uint32_t flags, pad;
};

/* What the client's LMV remembers, one for each client. */
struct tb_lmv {
    uint32_t rr_index, same_space;
    uint64_t penalty[TB_MAX_MDTS], server_penalty;
    int64_t used[TB_MAX_MDTS], server_used;
};

#define TB_STATE_MAGIC "TBSTATE1"
#define TB_STATE_VERSION 9u

struct tb_state {
    char magic[8];
    uint32_t version, n_osts, n_osss, n_pools;
    pthread_mutex_t lock;
    uint64_t rng, keep_bytes, disk_request_ns;             /* what each request to a disk takes beside its bytes */
    uint32_t sparse, threshold_rr, prio_free, active_osss; /* threshold and prio of 256 */
    uint32_t default_stripe_count, default_stripe_size, next_file_oid, epoch;
    uint32_t qos_dirty, qos_reset, qos_same_space, dead; /* dead: how many OSTs are */
    uint32_t qos_changed;                                /* space, since it was looked at */
    int64_t qos_looked;                                  /* in seconds since 1970 */
    struct tb_rr rr;
    uint16_t oss_order[TB_MAX_OSSS];
    struct tb_oss oss[TB_MAX_OSSS];
    struct tb_ost ost[TB_MAX_OSTS];
    struct tb_pool pool[TB_MAX_POOLS];
    uint64_t requests[TB_REQUESTS]; /* atomic */
    char fs_name[16];
    uint32_t n_mdts, mdt_wait_ms; /* how long calls wait for an MDT that is away; 0: until it is back */
    struct tb_mdt mdt[TB_MAX_MDTS];
    struct tb_lmv lmv[TB_MAX_MDT_CLIENTS + 1];
};

/* ---- a layout ---- */
struct tb_comp {
    uint64_t start, end;
    uint32_t stripe_size, pattern, flags, id;
    uint16_t stripe_count, hint; /* hint: LOV_OFFSET_DEFAULT = none */
    uint16_t n_list;             /* explicit list as given; kept by the MDS until instantiation */
    char pool[LOV_MAXPOOLNAME + 1];
    uint16_t list[TB_MAX_STRIPES];
    uint16_t ost[TB_MAX_STRIPES]; /* objects, when LCME_FL_INIT */
    uint32_t oid[TB_MAX_STRIPES];
};

struct tb_layout {
    uint32_t composite, gen, n_comps, file_oid;
    uint32_t client; /* that made the file, from 1; 0: nobody knows */
    struct tb_comp comp[TB_MAX_COMPS];
};

/* What the MDTs know of a directory, kept in TB/mds/lmv/<inode>; without it: a plain one on MDT 0. */
struct tb_place {
    uint32_t mdt, stripes, hash_type, has_default;
    uint8_t stripe_mdt[TB_MAX_DIR_STRIPES];
    struct lmv_user_md dmv; /* the default of directories made in it */
};

/* A directory that is being made. */
struct tb_making {
    bool ours; /* in the mount */
    struct tb_place place;
};

extern struct tb_state *tb_state;
extern char tb_dir[], tb_mount[], tb_mds[];

/* state.c */
bool tb_attach(void);
uint32_t tb_client(void);
int tb_attach_to(const char *dir);
void tb_lock(void);
void tb_unlock(void);
uint64_t tb_random_below(uint64_t limit);
void tb_crash(const char *reason);
uint64_t tb_ost_free(const struct tb_ost *ost);
uint64_t tb_ost_avail(const struct tb_ost *ost);
int tb_ost_refuses(const struct tb_ost *ost);
struct tb_rr *tb_targets(const char *pool);

/* control_pools.c */
void tb_targets_set(struct tb_rr *rr, const uint16_t *members, unsigned count);
void tb_spill(char *pool);

/* lsa.c: fills comp->ost and oid; returns 0 or a negative errno */
int lsa_allocate(struct tb_layout *layout, unsigned index, bool default_layout);

/* blob.c */
enum blob_of { BLOB_USER, BLOB_FILE, BLOB_DIR }; /* given by a user, or stored for a file or a directory */
int blob_decode(const void *data, size_t size, struct tb_layout *layout, enum blob_of of);
ssize_t blob_encode(const struct tb_layout *layout, void *buffer, size_t capacity, bool file);

/* layout_check.c */
int layout_check(struct tb_layout *layout, uint64_t expected_start, const char *inherited_pool);
void layout_fill_defaults(struct tb_layout *layout);
int layout_may_change(const struct stat *st);

/* layout.c: return 0 or a negative errno */
enum tb_via { VIA_IOCTL, VIA_XATTR };
int layout_set(int fd, const struct stat *st, const void *data, size_t size, enum tb_via via);
int layout_set_dir(int fd, const void *data, size_t size);
int layout_add(int fd, const struct stat *st, const void *data, size_t size);
int layout_del(int fd, const struct stat *st, const void *data, size_t size);
unsigned layout_last_count(int fd);
bool layout_reaches_dead(int fd, uint64_t from, uint64_t to);
uint64_t layout_bytes_below(uint64_t offset, const struct tb_comp *comp, unsigned stripe);
ssize_t layout_get(int fd, void *buffer, size_t capacity);
int layout_ensure_default(int fd, const struct stat *st);
int layout_cover(int fd, uint64_t end, bool truncate, uint64_t *covered);

/* mdts.c */
void place_load(int fd, struct tb_place *place);
int place_store(int fd, const struct tb_place *place);
uint32_t place_of_name(int parent, const char *name);
uint32_t place_of_path(int dirfd, const char *path);
uint32_t place_of_fd(int fd);
void mdt_count(uint32_t mdt, enum tb_md op, int64_t times);
int mdt_wait(uint32_t mdt);
long mdt_parameter(uint32_t mdt, const char *name, long otherwise);
bool mdt_denies(uint32_t mdt);

/* lmv_ioctl.c: 0 or a negative errno */
int lmv_set_stripe(int fd, const void *argument);
int lmv_get_stripe(int fd, struct lmv_user_md *out);
int lmv_set_default(int fd, const struct lmv_user_md *lum);

/* lmv.c, lmv_default.c */
int lmv_choose(int parent, const char *name, const struct lmv_user_md *asked, struct tb_place *place);
int lmv_default(int fd, struct lmv_user_md *out);

/* making.c: 0 or a negative errno; what has begun is to end. `made`: libc has made it by itself already */
int dir_begin(struct tb_making *making, int dirfd, const char *path, bool made);
void dir_end(struct tb_making *making, int dirfd, const char *path, bool made);

/* sidecar.c */
struct identity {
    uint64_t ino, handle; /* handle: hash of the file handle, which holds the inode's generation */
    int64_t btime_ns;
};
int sidecar_identify(int fd, struct identity *identity);
int sidecar_parent(int fd, bool *is_root);
int sidecar_write(const char *path, const void *data, size_t size);
int sidecar_load(int fd, struct tb_layout *layout);
int sidecar_store(int fd, const struct tb_layout *layout, bool file);
int sidecar_remove(int fd);
int sidecar_of_root(struct tb_layout *layout);
int sidecar_default_for(int fd, struct tb_layout *layout);
int sidecar_inherit(int fd);
struct tb_layout *layout_scratch(unsigned slot); /* under the lock */

/* disk.c */
void disk_wait(int fd, uint64_t from, uint64_t to);

/* handle.c */
void handle_hold(int fd);
void handle_forget(int fd);
bool handle_of_client(int fd);

/* files.c */
bool fd_in_mount(int fd, struct stat *st);
bool path_in_mount(int dirfd, const char *path, bool parent);
int fd_opened(int fd, int flags, bool delayed);
bool fd_managed(int fd, struct stat *st);
bool fd_moved(int fd, const struct stat *st, bool now);
int fd_cover(int fd, const struct stat *st, uint64_t end, bool truncate);
void fd_closing(int fd);
void fd_wait(int fd, uint64_t from, uint64_t to);

static inline void tb_request(enum tb_request kind, uint64_t count)
{
    __atomic_add_fetch(&tb_state->requests[kind], count, __ATOMIC_RELAXED);
}

int real_open(const char *path, int flags, int mode);
void real_close(int fd);

/* The next function of that name in the chain (libc, or a tool preloaded behind us). */
#define NEXT(name)                                                                                                     \
    ({                                                                                                                 \
        static __typeof__(&name) next_;                                                                                \
        if (!next_)                                                                                                    \
            next_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                                        \
        next_;                                                                                                         \
    })
#define PUBLIC __attribute__((visibility("default")))

#endif
