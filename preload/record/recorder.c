/* Which record an open or a close is worth, and where it goes: into the process's spool or the node's file. */
#include "record/recorder.h"
#include "base/clock.h"
#include "base/rawsys.h"
#include "base/text.h"
#include "names/dircache.h"
#include "process/state.h"
#include "record/node.h"
#include "record/spool.h"
#include "record/streams.h"

enum { CREATE_EXISTED = 1, CREATE_AGAIN = 2, CREATE_SHARED = 4, CLOSE_COUNTED = 1, CLOSE_NOT_CREATED = 2 };
enum { YOUNG_S = 2, JOINED_LOV_MAX = 512 };

/* Without O_EXCL nobody says whether the open made the file: one with content or a past did exist. */
static bool existed(const struct tz_stat *st)
{
    return st && (st->size > 0 || (st->born_s && st->changed_s - st->born_s > YOUNG_S));
}

/*
 * A copy made by fork often creates one file and becomes another program: a shell's redirection. The first few files
 * that it makes are noted on the node, so that it leaves no spool behind.
 */
static int32_t few; /* atomic */

void tz_record_forked(void)
{
    tz_store(&few, 2);
}

static bool one_of_few(void)
{
    return tz_load(&few) > 0 && __atomic_fetch_sub(&few, 1, __ATOMIC_RELAXED) > 0;
}

enum tz_made tz_record_create(struct tz_create *c, const struct tz_stat *st)
{
    const struct tz_names *names = &c->scratch->names;
    const struct tz_mount *m = c->where.mount;
    bool records = tz_config.recorder != TZ_RECORD_OFF;
    bool made = c->existence == TZ_FRESH || (records && c->existence == TZ_PERHAPS && !existed(st));
    uint32_t lov_max = made ? UINT16_MAX : JOINED_LOV_MAX; /* its maker has recorded the layout */
    struct tz_create_values values = {c->nth.precise, c->nth.loose, c->outcome,   c->found,
                                      c->refusal,     c->row_id,    c->generation};
    struct tz_record record = {
        TZ_CREATE,
        (uint16_t)((made ? 0 : CREATE_EXISTED) | (c->nth.again ? CREATE_AGAIN : 0) | (c->shared ? CREATE_SHARED : 0)),
        &values,
        sizeof values,
        TZ_PARTS,
        {{m->fs, m->fs_length},
         {c->where.key, c->where.key_length},
         {names->precise, names->precise_length},
         {names->loose, names->loose_length},
         {c->scratch->lov, c->lov_length <= lov_max ? c->lov_length : 0}}};

    if (!records)
        return made ? TZ_MADE : TZ_NOT_MADE;
    if (made && one_of_few() && tz_node_note(&record))
        return TZ_MADE_NOTED;
    if (made || (!tz_spool_made(TZ_CREATE, record.texts) && !tz_node_note(&record)))
        tz_spool_write(&record);
    return made ? TZ_MADE : TZ_NOT_MADE;
}

/* A file that was there is opened to be written: who looks at the step while it runs must not take it for done. */
static void note_open(const struct tz_where *where)
{
    struct tz_close_values values = {0};
    struct tz_record record = {TZ_OPEN, CLOSE_NOT_CREATED,
                               &values, sizeof values,
                               2,       {{where->mount->fs, where->mount->fs_length}, {where->key, where->key_length}}};

    if (tz_spool_made(TZ_CREATE, record.texts))
        tz_spool_reopened(record.texts);
    else if (tz_config.mode == TZ_PLACE)
        tz_node_note(&record);
}

void tz_record_open(int fd, const struct tz_stat *st, const struct tz_where *where, int flags, enum tz_made made,
                    FILE *stream)
{
    static const uint32_t as[] = {0, TZ_FILE_CREATED, TZ_FILE_CREATED | TZ_FILE_NOTED, TZ_FILE_ADOPTED};
    struct tz_file *file;

    if (tz_config.recorder == TZ_RECORD_OFF || (flags & O_ACCMODE) == O_RDONLY || !tz_owner())
        return;
    if (made == TZ_NOT_MADE)
        note_open(where);
    file = tz_file_new(as[made] | (flags & O_APPEND ? TZ_FILE_APPEND : 0), where->mount, where->key, where->key_length);
    if (!file)
        return;
    if (st) {
        file->ino = st->ino;
        file->opened_size = st->size;
        if (flags & O_APPEND)
            file->position = st->size;
    }
    file->opened_ns = tz_now_ns();
    tz_files_share(fd, file);
    tz_file_put(file);
    if (stream)
        tz_streams_add(stream);
}

/*
 * In the process's own spool when it has made the file, or when what it wrote was counted. Who only had it open, as
 * every process of a script has the script's output, is noted once on the node.
 */
static void append_close(struct tz_file *file, uint64_t size)
{
    const struct tz_mount *m = file->mount;
    bool adopted = file->flags & TZ_FILE_ADOPTED, made = file->flags & TZ_FILE_CREATED;
    uint64_t low = tz_relaxed(&file->low);
    struct tz_close_values values = {.size = size,
                                     .written = tz_relaxed(&file->bytes),
                                     .low = low == UINT64_MAX ? 0 : low,
                                     .high = tz_relaxed(&file->high),
                                     .writes = (uint32_t)tz_relaxed(&file->writes),
                                     .segments = (uint32_t)tz_relaxed(&file->segments),
                                     .opened_ns = file->opened_ns};
    struct tz_record record = {
        TZ_CLOSE, (uint16_t)((tz_counting && !adopted ? CLOSE_COUNTED : 0) | (made ? 0 : CLOSE_NOT_CREATED)),
        &values,  sizeof values,
        2,        {{m->fs, m->fs_length}, {tz_file_key(file), file->key_length}}};

    if (adopted && size == file->opened_size)
        return;
    if ((file->flags & TZ_FILE_NOTED || (!made && (adopted || values.written == 0))) &&
        !tz_spool_made(TZ_CREATE, record.texts) && tz_node_note(&record))
        return;
    tz_spool_write(&record);
}

/* A child's copy of a descriptor is worth a record only when the child has written. */
static bool worth_recording(const struct tz_file *file)
{
    return !(file->flags & TZ_FILE_DIRECTORY) && (!(file->flags & TZ_FILE_INHERITED) || tz_relaxed(&file->writes) > 0);
}

static bool read_size(int fd, const struct tz_file *file, uint64_t *size)
{
    struct tz_stat st;

    if (tz_look(fd, &st) || (file->ino && st.ino != file->ino))
        return false; /* closed and opened anew behind our back */
    *size = st.size;
    return true;
}

/* Never by flushing: an error would be lost, and libc throws away what it could not write. */
static void expect(struct tz_file *file, int fd, FILE *stream)
{
    struct tz_stat st;
    uint64_t end;

    if (worth_recording(file) && tz_look(fd, &st) == 0 && (end = tz_stream_end(stream, fd, st.size)) > st.size)
        __atomic_store_n(&file->end, end, __ATOMIC_RELAXED);
}

void tz_record_closing(int fd, FILE *stream, struct tz_closing *closing)
{
    struct tz_file *file;
    bool last;

    *closing = (struct tz_closing){0};
    if (!tz_files_get(fd) || !tz_owner())
        return;
    closing->file = file = tz_files_take(fd, &last);
    if (!file)
        return;
    if (stream)
        expect(file, fd, stream);
    if (last && worth_recording(file))
        closing->record = read_size(fd, file, &closing->size);
}

void tz_record_closed(struct tz_closing *closing, bool written)
{
    uint64_t end;

    if (!closing->file)
        return;
    end = written ? tz_relaxed(&closing->file->end) : 0;
    if (!written)
        __atomic_store_n(&closing->file->end, 0, __ATOMIC_RELAXED);
    if (closing->record)
        append_close(closing->file, end > closing->size ? end : closing->size);
    tz_file_put(closing->file);
    closing->file = NULL;
}

void tz_record_close(int fd)
{
    struct tz_closing closing;

    tz_record_closing(fd, NULL, &closing);
    tz_record_closed(&closing, true);
}

static void expect_at_exit(FILE *stream)
{
    int fd = fileno(stream);
    struct tz_file *file = tz_files_hold(fd);

    if (!file)
        return;
    expect(file, fd, stream);
    tz_file_put(file);
}

void tz_record_streams(void)
{
    tz_streams_each(expect_at_exit);
}

/* False where it lies in no managed mount. */
static bool adopt(int fd, const struct tz_stat *st, FILE *stream, struct tz_scratch **scratch)
{
    struct tz_where where;
    size_t length;
    char *path;
    long flags;

    if (!tz_scratch_need(scratch))
        return false;
    path = (*scratch)->opened;
    length = tz_fd_path(fd, path);
    if (length == 0 || (length > 10 && memcmp(path + length - 10, " (deleted)", 10) == 0) ||
        !tz_dircache_managed(path, length, *scratch))
        return false;
    flags = syscall(SYS_fcntl, fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return true;
    if (tz_locate(AT_FDCWD, path, scratch, &where) && tz_key_wanted(where.key, where.key_length))
        tz_record_open(fd, st, &where, (int)flags, TZ_WAS_OPEN, stream);
    return true;
}

static bool is_file(int fd, struct tz_stat *st)
{
    return tz_look(fd, st) == 0 && S_ISREG(st->mode);
}

void tz_record_adopt(void)
{
    struct tz_scratch *scratch = NULL;
    struct tz_stat output, error;
    bool elsewhere = is_file(1, &output) && !adopt(1, &output, stdout, &scratch);

    if (is_file(2, &error) && !(elsewhere && error.dev == output.dev && error.ino == output.ino))
        adopt(2, &error, stderr, &scratch);
    tz_scratch_put(scratch);
}
