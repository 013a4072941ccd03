/* Reading a file piece by piece; a line may lie across two of them. */
#include "base/lines.h"
#include "base/pages.h"
#include "base/rawsys.h"

enum { ROOM = 65536 };

/* The whole lines of `text`; how much of it they were. */
static size_t call_each(char *text, size_t length, bool (*each)(char *, char *, void *), void *argument, bool *enough)
{
    char *p = text, *end;

    while (!*enough && (end = memchr(p, '\n', (size_t)(text + length - p))) != NULL) {
        *end = '\0';
        *enough = each(p, end, argument);
        p = end + 1;
    }
    return (size_t)(p - text);
}

static void read_all(int fd, char *text, bool (*each)(char *, char *, void *), void *argument)
{
    size_t length = 0, used;
    bool enough = false;
    long n;

    while (!enough && (n = syscall(SYS_read, fd, text + length, ROOM - length)) > 0) {
        length += (size_t)n;
        used = call_each(text, length, each, argument, &enough);
        if (used == 0 && length == ROOM) /* a part of a line that is too long */
            used = length;
        memmove(text, text + used, length - used);
        length -= used;
    }
}

/* For one file at a time: whoever comes meanwhile, or in the copy of a process that was at it, has pages of his own. */
TZ_LARGE static char common[ROOM];
static int used; /* atomic */

static char *take_room(void)
{
    return __atomic_exchange_n(&used, 1, __ATOMIC_ACQUIRE) ? tz_pages(ROOM) : common;
}

static void give_back(char *text)
{
    if (text == common)
        __atomic_store_n(&used, 0, __ATOMIC_RELEASE);
    else
        tz_pages_free(text, ROOM);
}

bool tz_lines(int at, const char *path, bool (*each)(char *line, char *end, void *argument), void *argument)
{
    int fd = (int)syscall(SYS_openat, at, path, O_RDONLY | O_CLOEXEC);
    char *text = fd >= 0 ? take_room() : NULL;

    if (text) {
        read_all(fd, text, each, argument);
        give_back(text);
    }
    if (fd >= 0)
        tz_sys_close(fd);
    return text != NULL;
}
