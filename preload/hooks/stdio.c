/* Streams: fopen and its kin, fclose, and in full mode fwrite and seeking. */
#include "hooks/opening.h"
#include "life/start.h"
#include "place/apply.h"
#include "record/recorder.h"
#include "record/streams.h"

/* What an fopen mode asks of open; -1 for one that libc refuses. */
static int mode_flags(const char *mode, bool *charset)
{
    int flags;

    *charset = false;
    if (!mode)
        return -1;
    switch (*mode) {
    case 'r':
        flags = O_RDONLY;
        break;
    case 'w':
        flags = O_WRONLY | O_CREAT | O_TRUNC;
        break;
    case 'a':
        flags = O_WRONLY | O_CREAT | O_APPEND;
        break;
    default:
        return -1;
    }
    for (int i = 1; i < 7 && mode[i]; i++) { /* libc reads no further either */
        if (mode[i] == '+')
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        else if (mode[i] == 'x')
            flags |= O_EXCL;
        else if (mode[i] == 'e')
            flags |= O_CLOEXEC;
        else if (mode[i] == ',')
            break;
    }
    *charset = strstr(mode, ",ccs=") != NULL;
    return flags;
}

/* As fopen does: a stream that only appends begins at the end. */
static bool seek_end(int fd, int flags)
{
    bool appends = (flags & O_APPEND) && (flags & O_ACCMODE) == O_WRONLY;

    return !appends || syscall(SYS_lseek, fd, 0, SEEK_END) >= 0 || errno == ESPIPE;
}

static FILE *place_stream(struct tz_opening *opening, const char *mode)
{
    int saved = errno, fd = tz_place_open(&opening->create, &opening->plan);
    FILE *stream;

    if (fd < 0)
        return NULL;
    stream = seek_end(fd, opening->create.call.flags) ? REAL(fdopen)(fd, mode) : NULL;
    if (!stream) {
        saved = errno;
        REAL(close)(fd);
    }
    errno = saved;
    return stream;
}

/* libc opens such a stream by itself, and a second open of a file that we have made could be refused. */
static void leave_to_libc(struct tz_opening *opening)
{
    if (opening->place)
        tz_skipped(&opening->create, TZ_BY_LIBC);
    opening->place = false;
}

static FILE *hook_fopen(tz_fn_fopen *real, enum tz_symbol symbol, const char *path, const char *mode)
{
    struct tz_opening opening;
    struct tz_call call = {symbol, AT_FDCWD, path, 0, 0666};
    FILE *stream;
    bool charset;

    call.flags = mode_flags(mode, &charset);
    if (call.flags <= 0 || (call.flags & (O_CREAT | O_ACCMODE)) == 0 || !tz_enter())
        return real(path, mode);
    if (!tz_opening_begin(&opening, &call)) {
        tz_leave();
        return real(path, mode);
    }
    if (charset) /* fdopen knows none */
        leave_to_libc(&opening);
    stream = opening.place ? place_stream(&opening, mode) : real(path, mode);
    tz_opening_end(&opening, stream ? fileno(stream) : -1, stream);
    tz_leave();
    return stream;
}

TZ_EXPORT FILE *fopen(const char *path, const char *mode)
{
    return hook_fopen(REAL(fopen), TZ_SYM_open, path, mode);
}

TZ_EXPORT FILE *fopen64(const char *path, const char *mode)
{
    return hook_fopen(REAL(fopen64), TZ_SYM_open64, path, mode);
}

static FILE *hook_freopen(tz_fn_freopen *real, enum tz_symbol symbol, const char *path, const char *mode, FILE *stream)
{
    struct tz_call call = {symbol, AT_FDCWD, path, 0, 0666};
    struct tz_opening opening;
    struct tz_closing closing;
    bool charset, managed = false;
    int saved = errno;
    FILE *result;

    if (!path || !stream || !tz_enter()) /* without a path only the mode changes */
        return real(path, mode, stream);
    call.flags = mode_flags(mode, &charset);
    tz_streams_remove(stream);
    tz_record_closing(fileno(stream), stream, &closing);
    if (call.flags > 0 && (call.flags & (O_CREAT | O_ACCMODE)))
        managed = tz_opening_begin(&opening, &call);
    if (managed)
        leave_to_libc(&opening);
    errno = saved;
    result = real(path, mode, stream);
    saved = errno;
    tz_record_closed(&closing, true);
    if (managed)
        tz_opening_end(&opening, result ? fileno(result) : -1, result);
    tz_leave();
    errno = saved;
    return result;
}

TZ_EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    return hook_freopen(REAL(freopen), TZ_SYM_open, path, mode, stream);
}

TZ_EXPORT FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
    return hook_freopen(REAL(freopen64), TZ_SYM_open64, path, mode, stream);
}

TZ_EXPORT FILE *fdopen(int fd, const char *mode)
{
    FILE *stream = REAL(fdopen)(fd, mode);

    if (stream && tz_files_get(fd))
        tz_streams_add(stream);
    return stream;
}

TZ_EXPORT int fclose(FILE *stream)
{
    struct tz_closing closing;
    int saved = errno, fd, result;

    if (!stream)
        return REAL(fclose)(stream);
    tz_streams_remove(stream);
    fd = fileno(stream);
    errno = saved;
    if (!tz_files_get(fd) || !tz_enter())
        return REAL(fclose)(stream);
    tz_record_closing(fd, stream, &closing);
    errno = saved;
    result = REAL(fclose)(stream);
    saved = errno;
    tz_record_closed(&closing, result == 0);
    tz_leave();
    errno = saved;
    return result;
}

/* The file behind a stream while writes are counted, with a reference; NULL otherwise. */
static struct tz_file *counted(FILE *stream)
{
    int saved = errno, fd;

    if (!tz_relaxed(&tz_counting) || tz_depth || !stream)
        return NULL;
    fd = fileno(stream);
    errno = saved;
    return tz_files_hold(fd);
}

TZ_EXPORT size_t fwrite(const void *data, size_t size, size_t count, FILE *stream)
{
    size_t done = REAL(fwrite)(data, size, count, stream);
    struct tz_file *file = done && size ? counted(stream) : NULL;

    if (file) {
        tz_file_wrote(file, __atomic_fetch_add(&file->position, done * size, __ATOMIC_RELAXED), done * size);
        tz_file_put(file);
    }
    return done;
}

static void moved(FILE *stream)
{
    struct tz_file *file = counted(stream);
    int saved = errno;
    int64_t at;

    if (!file)
        return;
    at = tz_stream_position(stream, fileno(stream)); /* ftello would wait for a thread that holds the stream */
    if (at >= 0)
        __atomic_store_n(&file->position, (uint64_t)at, __ATOMIC_RELAXED);
    tz_file_put(file);
    errno = saved;
}

#define SEEK(name, type)                                                                                               \
    TZ_EXPORT int name(FILE *stream, type offset, int whence)                                                          \
    {                                                                                                                  \
        int result = REAL(name)(stream, offset, whence);                                                               \
                                                                                                                       \
        moved(stream);                                                                                                 \
        return result;                                                                                                 \
    }

SEEK(fseek, long)
SEEK(fseeko, off_t)
SEEK(fseeko64, off64_t)

TZ_EXPORT void rewind(FILE *stream)
{
    REAL(rewind)(stream);
    moved(stream);
}
