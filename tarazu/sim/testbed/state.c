/* The emulated MDS's memory: one file, mapped by every process, under a lock that a killed process cannot keep. */
#include "tb.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct tb_state *tb_state;
char tb_dir[PATH_MAX], tb_mount[PATH_MAX], tb_mds[PATH_MAX];

int real_open(const char *path, int flags, int mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

void real_close(int fd)
{
    int saved = errno;

    syscall(SYS_close, fd);
    errno = saved;
}

int tb_attach_to(const char *dir)
{
    char path[PATH_MAX];
    struct tb_state *state;
    int fd;

    if (!realpath(dir, tb_dir))
        return -errno;
    if (snprintf(tb_mount, PATH_MAX, "%s/mnt", tb_dir) >= PATH_MAX ||
        snprintf(tb_mds, PATH_MAX, "%s/mds", tb_dir) >= PATH_MAX ||
        snprintf(path, PATH_MAX, "%s/mds/state", tb_dir) >= PATH_MAX)
        return -ENAMETOOLONG;
    fd = real_open(path, O_RDWR, 0);
    if (fd < 0)
        return -errno;
    state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    real_close(fd);
    if (state == MAP_FAILED)
        return -errno;
    if (memcmp(state->magic, TB_STATE_MAGIC, 8) != 0 || state->version != TB_STATE_VERSION) {
        munmap(state, sizeof(*state));
        return -EINVAL;
    }
    if (tb_state)
        munmap(tb_state, sizeof(*tb_state));
    __atomic_store_n(&tb_state, state, __ATOMIC_RELEASE);
    return 0;
}

static void attach_once(void)
{
    const char *dir = getenv(TB_VARIABLE);
    int saved = errno;

    if (dir && *dir)
        tb_attach_to(dir);
    errno = saved;
}

/* True when this process lives in a testbed. Hooks run before constructors, hence lazily. */
bool tb_attach(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (__atomic_load_n(&tb_state, __ATOMIC_ACQUIRE))
        return true;
    pthread_once(&once, attach_once);
    return __atomic_load_n(&tb_state, __ATOMIC_ACQUIRE) != NULL;
}

/* The number of the client on which this process runs, from 1; 0 on a server. */
uint32_t tb_client(void)
{
    const char *name = getenv("TESTBED_CLIENT");

    return name && strncmp(name, "client", 6) == 0 ? (uint32_t)strtoul(name + 6, NULL, 10) : 0;
}

static __thread int lock_depth;

void tb_lock(void)
{
    if (lock_depth++ == 0 && pthread_mutex_lock(&tb_state->lock) == EOWNERDEAD) {
        /* The owner was killed inside; every update leaves usable values, only the cached weights may be stale. */
        tb_state->qos_dirty = 1;
        pthread_mutex_consistent(&tb_state->lock);
    }
}

void tb_unlock(void)
{
    if (--lock_depth == 0)
        pthread_mutex_unlock(&tb_state->lock);
}

/* splitmix64: seedable, and the sequence is shared by all processes. */
uint64_t tb_random_below(uint64_t limit)
{
    uint64_t z = (tb_state->rng += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return limit ? z % limit : 0;
}

/* What would have brought a real MDS down: tests assert that the file never appears. */
void tb_crash(const char *reason)
{
    char path[PATH_MAX + 16];
    int fd;

    snprintf(path, sizeof(path), "%s/CRASHED", tb_mds);
    fd = real_open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0)
        return;
    if (syscall(SYS_write, fd, reason, strlen(reason)) < 0)
        perror(path);
    real_close(fd);
}

uint64_t tb_ost_free(const struct tb_ost *ost)
{
    uint64_t used = ost->base + ost->used;

    return used >= ost->total ? 0 : ost->total - used;
}

/* ldiskfs keeps about 5 % back from ordinary users; the testbed keeps nothing, so that fractions are exact. */
uint64_t tb_ost_avail(const struct tb_ost *ost)
{
    return ost->flags & OST_FULL ? 0 : tb_ost_free(ost);
}

/* The errno with which an object is refused on this target; 0 = welcome. */
int tb_ost_refuses(const struct tb_ost *ost)
{
    if (ost->flags & OST_INACTIVE)
        return EREMOTEIO;
    if (tb_ost_avail(ost) < ost->total / 1000 || tb_ost_avail(ost) == 0)
        return ENOSPC;
    if (ost->flags & OST_READONLY)
        return EROFS;
    if (ost->flags & OST_NO_CREATE)
        return ENOBUFS;
    return 0;
}

/* The targets of a pool; those of the whole file system for "", for names that do not exist and for empty pools. */
struct tb_rr *tb_targets(const char *pool)
{
    for (unsigned i = 0; pool[0] && i < tb_state->n_pools; i++)
        if (strcmp(tb_state->pool[i].name, pool) == 0 && tb_state->pool[i].rr.count)
            return &tb_state->pool[i].rr;
    return &tb_state->rr;
}
