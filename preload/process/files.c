/* The table of descriptors, without locks: a thread or a copy of the process may stop anywhere in here. */
#include "process/files.h"
#include "base/pages.h"

/* Descriptions live in chunks that are never unmapped: a racing reader sees an old one, not a hole. */
enum { FEW = 2, CHUNK = 128, CHUNKS = 4096 };

/* A number of references that none can be added to: the last one was given back, and its key is just being freed. */
#define ENDING (UINT32_MAX / 2)

TZ_MIDDLE struct tz_file *tz_files_first[TZ_FIRST_FDS];
TZ_LARGE struct tz_file **tz_files_table[TZ_FDS_MAX / 1024];

TZ_MIDDLE static struct tz_file first_chunk[FEW]; /* all that most processes have open at a time */
TZ_LARGE static struct tz_file *chunks[CHUNKS];   /* atomic pointers; of the first one not used */
uint32_t tz_files_beyond;
static uint32_t hint;         /* atomic: where the last free one was */
static uint32_t replacements; /* atomic: of descriptors, by dup2 */

static struct tz_file *take_free(struct tz_file *in, int count)
{
    for (int i = 0; i < count; i++) {
        uint32_t expected = 0;

        /* The first one is written to at once: a page that is read before costs two faults. */
        if ((i == 0 || tz_relaxed(&in[i].refs) == 0) &&
            __atomic_compare_exchange_n(&in[i].refs, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return &in[i];
    }
    return NULL;
}

static struct tz_file *allocate(void)
{
    /* Where the last free one was, then from the start before making more. */
    for (uint32_t n = 0; n <= CHUNKS; n++) {
        uint32_t i = n ? n - 1 : tz_relaxed(&hint);
        struct tz_file *chunk = i ? tz_pages_once(&chunks[i], CHUNK * sizeof *chunk) : first_chunk, *file;

        if (!chunk)
            return NULL;
        file = take_free(chunk, i ? CHUNK : FEW);
        if (file) {
            __atomic_store_n(&hint, i, __ATOMIC_RELAXED);
            return file;
        }
    }
    return NULL;
}

static struct tz_file **slot_of(int fd)
{
    struct tz_file **chunk = NULL;

    if ((unsigned)fd < TZ_FIRST_FDS)
        return &tz_files_first[fd];
    if ((unsigned)fd < TZ_FDS_MAX)
        chunk = tz_pages_once(&tz_files_table[(unsigned)fd >> 10], 1024 * sizeof *chunk);
    return chunk ? &chunk[fd & 1023] : NULL;
}

/* The slot in which a description is about to be put. */
static struct tz_file **use_slot(int fd)
{
    uint32_t seen = tz_load(&tz_files_beyond);

    while (seen <= (uint32_t)fd && fd >= 0 &&
           !__atomic_compare_exchange_n(&tz_files_beyond, &seen, (uint32_t)fd + 1, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
        ;
    return slot_of(fd);
}

/* A reference to one that has some: it may have become another file's meanwhile. */
static bool add_reference(struct tz_file *file)
{
    uint32_t seen = tz_load(&file->refs);

    while (seen && seen < ENDING)
        if (__atomic_compare_exchange_n(&file->refs, &seen, seen + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return true;
    return false;
}

void tz_file_put(struct tz_file *file)
{
    uint32_t seen = tz_load(&file->refs);

    while (!__atomic_compare_exchange_n(&file->refs, &seen, seen == 1 ? ENDING : seen - 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
        ;
    if (seen > 1)
        return;
    tz_pages_free(file->long_key, file->key_length + 1);
    tz_store(&file->refs, 0);
}

struct tz_file *tz_files_hold(int fd)
{
    struct tz_file **slot = tz_files_get(fd) ? slot_of(fd) : NULL, *file;

    while (slot && (file = tz_load(slot)) != NULL) {
        if (!add_reference(file))
            continue;
        if (tz_load(slot) == file)
            return file;
        tz_file_put(file);
    }
    return NULL;
}

/* One that a descriptor stood for until now. */
static void drop(struct tz_file *file)
{
    if (!file)
        return;
    __atomic_sub_fetch(&file->descriptors, 1, __ATOMIC_ACQ_REL);
    tz_file_put(file);
}

struct tz_file *tz_file_new(uint32_t flags, struct tz_mount *mount, const char *key, size_t length)
{
    struct tz_file *file = allocate();

    if (!file)
        return NULL;
    memset((char *)file + offsetof(struct tz_file, descriptors), 0,
           offsetof(struct tz_file, key) - offsetof(struct tz_file, descriptors));
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
    return file;
}

void tz_files_share(int fd, struct tz_file *of)
{
    struct tz_file **slot = use_slot(fd);

    if (!slot || !add_reference(of))
        return;
    __atomic_add_fetch(&of->descriptors, 1, __ATOMIC_ACQ_REL);
    drop(__atomic_exchange_n(slot, of, __ATOMIC_SEQ_CST)); /* an old entry was closed behind our back */
}

struct tz_file *tz_files_take(int fd, bool *last)
{
    struct tz_file **slot = tz_files_get(fd) ? slot_of(fd) : NULL;
    struct tz_file *file = slot ? __atomic_exchange_n(slot, NULL, __ATOMIC_ACQ_REL) : NULL;

    *last = file && __atomic_sub_fetch(&file->descriptors, 1, __ATOMIC_ACQ_REL) == 0;
    return file;
}

void tz_files_each(unsigned first_fd, unsigned last, void (*call)(int fd))
{
    unsigned end = tz_load(&tz_files_beyond);

    if (last < end)
        end = last + 1;
    for (unsigned fd = first_fd; fd < end; fd++) {
        if (fd >= TZ_FIRST_FDS && !tz_load(&tz_files_table[fd >> 10]))
            fd |= 1023;
        else if (tz_files_get((int)fd))
            call((int)fd);
    }
}

size_t tz_files_directory(int fd, char *out, size_t size)
{
    struct tz_file *file = tz_files_hold(fd);
    size_t length = 0;

    if (!file)
        return 0;
    if ((file->flags & TZ_FILE_DIRECTORY) && file->key_length < size) {
        length = file->key_length;
        memcpy(out, tz_file_key(file), length);
    }
    tz_file_put(file);
    return length;
}

uint32_t tz_files_replacements(void)
{
    return tz_load(&replacements);
}

/* Takes out `file` where it still is. */
static void forget(int fd, struct tz_file *file)
{
    struct tz_file **slot = slot_of(fd);
    struct tz_file *seen = file;

    if (slot && __atomic_compare_exchange_n(slot, &seen, NULL, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        drop(file);
}

void tz_files_set_directory(int fd, const char *path, size_t length, uint32_t before)
{
    struct tz_file *file;

    if (tz_files_get(fd))
        return;
    file = tz_file_new(TZ_FILE_DIRECTORY, NULL, path, length);
    if (!file)
        return;
    tz_files_share(fd, file);
    if (__atomic_fetch_add(&replacements, 0, __ATOMIC_SEQ_CST) != before)
        forget(fd, file);
    tz_file_put(file);
}

void tz_files_replaced(int fd)
{
    struct tz_file *file;

    __atomic_add_fetch(&replacements, 1, __ATOMIC_SEQ_CST);
    file = tz_files_hold(fd);
    if (!file)
        return;
    if (file->flags & TZ_FILE_DIRECTORY)
        forget(fd, file);
    tz_file_put(file);
}

static void mark_inherited(int fd)
{
    struct tz_file *file = tz_files_hold(fd);

    if (!file)
        return;
    file->flags |= TZ_FILE_INHERITED;
    file->bytes = file->writes = 0;
    tz_file_put(file);
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
