/* Standard output and error: where they lead, and whether that is a managed file. */
#include "record/adopt.h"

#include "base/fd_path.h"
#include "base/rawsys.h"
#include "names/paths.h"
#include "process/config.h"
#include "record/recorder.h"

static void adopt(int fd, FILE *stream, struct tz_scratch **scratch)
{
    struct tz_where where;
    struct tz_stat st;
    size_t length;
    char *path;
    long flags;

    if (tz_look(fd, &st) || !S_ISREG(st.mode))
        return;
    flags = syscall(SYS_fcntl, fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return;
    if (!tz_scratch_need(scratch))
        return;
    path = (*scratch)->opened;
    length = tz_fd_path(fd, path);
    if (length == 0 || (length > 10 && memcmp(path + length - 10, " (deleted)", 10) == 0))
        return;
    if (tz_locate(AT_FDCWD, path, scratch, &where) && tz_key_wanted(where.key, where.key_length))
        tz_record_open(fd, &where, (int)flags, TZ_WAS_OPEN, stream);
}

void tz_adopt(void)
{
    struct tz_scratch *scratch = NULL;

    adopt(1, stdout, &scratch);
    adopt(2, stderr, &scratch);
    tz_scratch_put(scratch);
}
