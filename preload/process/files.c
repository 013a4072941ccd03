/* The table of descriptors, without locks: a thread or a copy of the process may stop anywhere in here. */
#include "process/files.h"
#include "base/pages.h"

/* Descriptions live in chunks that are never unmapped: a racing reader sees an old one, not a hole. */
enum { CHUNK = 128, CHUNKS = 4096 };

struct tz_file **tz_files_table[TZ_FDS_MAX / 1024];

static struct tz_file *chunks[CHUNKS]; /* atomic pointers */
static uint32_t hint;                  /* atomic: where the last free one was */

static struct tz_file *take_free(struct tz_file *in)
{
    for (int i = 0; i < CHUNK; i++) {
        uint32_t expected = 0;

        if (tz_relaxed(&in[i].refs) == 0 &&
            __atomic_compare_exchange_n(&in[i].refs, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return &in[i];
    }
    return NULL;
}

static struct tz_file *allocate(void)
{
    uint32_t first = tz_relaxed(&hint);

    for (uint32_t n = 0; n < CHUNKS; n++) {
        uint32_t i = (first + n) % CHUNKS;
        struct tz_file *chunk = tz_pages_once(&chunks[i], CHUNK * sizeof *chunk), *file;

        if (!chunk)
            return NULL;
        file = take_free(chunk);
        if (file) {
            __atomic_store_n(&hint, i, __ATOMIC_RELAXED);
            return file;
        }
        if (n == 0 && first) /* look from the start before making more */
            n = CHUNKS - first - 1;
    }
    return NULL;
}

static struct tz_file **slot_of(int fd)
{
    struct tz_file **chunk = NULL;

    if ((unsigned)fd < TZ_FDS_MAX)
        chunk = tz_pages_once(&tz_files_table[(unsigned)fd >> 10], 1024 * sizeof *chunk);
    return chunk ? &chunk[fd & 1023] : NULL;
}

void tz_file_put(struct tz_file *file)
{
    char *long_key = file->long_key;
    size_t length = file->key_length;

    if (__atomic_sub_fetch(&file->refs, 1, __ATOMIC_ACQ_REL) == 0)
        tz_pages_free(long_key, length + 1);
}

struct tz_file *tz_files_open(int fd, uint32_t flags, struct tz_mount *mount, const char *key, size_t length)
{
    struct tz_file **slot = slot_of(fd), *file, *old;

    file = slot ? allocate() : NULL;
    if (!file)
        return NULL;
    memset((char *)file + offsetof(struct tz_file, flags), 0,
           offsetof(struct tz_file, key) - offsetof(struct tz_file, flags));
    file->flags = flags;
    file->mount = mount;
    file->low = UINT64_MAX;
    file->last_end = UINT64_MAX;
    file->key_length = (uint32_t)length;
    if (length >= TZ_INLINE_KEY) {
        file->long_key = tz_pages(length + 1);
        if (!file->long_key) {
            tz_file_put(file);
            return NULL;
        }
    }
    memcpy(file->long_key ? file->long_key : file->key, key, length);
    (file->long_key ? file->long_key : file->key)[length] = '\0';
    /* An old entry was closed behind our back. */
    old = __atomic_exchange_n(slot, file, __ATOMIC_ACQ_REL);
    if (old)
        tz_file_put(old);
    return file;
}

void tz_files_share(int fd, struct tz_file *of)
{
    struct tz_file **slot = slot_of(fd), *old;

    if (!slot)
        return;
    __atomic_add_fetch(&of->refs, 1, __ATOMIC_ACQ_REL);
    old = __atomic_exchange_n(slot, of, __ATOMIC_ACQ_REL);
    if (old)
        tz_file_put(old);
}

struct tz_file *tz_files_take(int fd)
{
    struct tz_file **slot = tz_files_get(fd) ? slot_of(fd) : NULL;

    return slot ? __atomic_exchange_n(slot, NULL, __ATOMIC_ACQ_REL) : NULL;
}

void tz_files_each(unsigned first, unsigned last, void (*call)(int fd, struct tz_file *file))
{
    if (last >= TZ_FDS_MAX)
        last = TZ_FDS_MAX - 1;
    for (unsigned fd = first; fd <= last; fd++) {
        struct tz_file *file;

        if (!tz_load(&tz_files_table[fd >> 10])) {
            fd |= 1023;
            continue;
        }
        file = tz_files_get((int)fd);
        if (file)
            call((int)fd, file);
    }
}

size_t tz_files_directory(int fd, char *out, size_t size)
{
    struct tz_file *file = tz_files_get(fd);

    if (!file || !(file->flags & TZ_FILE_DIRECTORY) || file->key_length >= size)
        return 0;
    memcpy(out, tz_file_key(file), file->key_length);
    return file->key_length;
}

void tz_files_set_directory(int fd, const char *path, size_t length)
{
    if (!tz_files_get(fd))
        tz_files_open(fd, TZ_FILE_DIRECTORY, NULL, path, length);
}

static void mark_inherited(int fd, struct tz_file *file)
{
    (void)fd;
    file->flags |= TZ_FILE_INHERITED;
    file->bytes = file->writes = 0;
}

void tz_files_forked(void)
{
    tz_files_each(0, TZ_FDS_MAX - 1, mark_inherited);
}

void tz_file_wrote(struct tz_file *file, uint64_t offset, uint64_t count)
{
    uint64_t end = offset + count, seen;

    __atomic_add_fetch(&file->bytes, count, __ATOMIC_RELAXED);
    __atomic_add_fetch(&file->writes, 1, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&file->last_end, end, __ATOMIC_RELAXED) != offset)
        __atomic_add_fetch(&file->segments, 1, __ATOMIC_RELAXED);
    seen = tz_relaxed(&file->low);
    while (offset < seen &&
           !__atomic_compare_exchange_n(&file->low, &seen, offset, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    seen = tz_relaxed(&file->high);
    while (end > seen &&
           !__atomic_compare_exchange_n(&file->high, &seen, end, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}
