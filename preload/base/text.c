/* What printf and strtol would do, and may not: hooks run in signal handlers. */
#include "base/text.h"
#include "base/rawsys.h"

bool tz_join(char *out, size_t size, const char *const *texts)
{
    size_t at = 0, length;

    for (; *texts; texts++, at += length) {
        length = strlen(*texts);
        if (at + length >= size)
            return false;
        memcpy(out + at, *texts, length + 1);
    }
    return true;
}

size_t tz_put_number(char *out, uint64_t value, unsigned base)
{
    char digits[24];
    size_t n = 0, length = 0;

    do
        digits[n++] = "0123456789abcdef"[value % base];
    while (value /= base);
    while (n)
        out[length++] = digits[--n];
    out[length] = '\0';
    return length;
}

uint64_t tz_read_number(const char **text, unsigned base)
{
    const char *from = *text;

    while (**text >= '0' && **text < (char)('0' + base))
        ++*text;
    return tz_number_of(from, (size_t)(*text - from), base);
}

/* Linux before 3.17 has no /proc/thread-self. Atomic: 0 not known yet, 1 it has, -1 it has not. */
static int thread_self;

static bool has_thread_self(void)
{
    char target[8];

    if (tz_unlikely(!tz_relaxed(&thread_self))) {
        if (tz_readlink("/proc/thread-self", target, sizeof target) >= 0)
            tz_store(&thread_self, 1);
        else if (tz_readlink("/proc/self", target, sizeof target) >= 0)
            tz_store(&thread_self, -1);
    }
    return tz_relaxed(&thread_self) >= 0;
}

static void put_link(char out[TZ_FD_LINK_MAX], int fd)
{
    char digits[24];

    tz_put_number(digits, (unsigned)fd, 10);
    tz_join(out, TZ_FD_LINK_MAX, (const char *[]){"/proc/thread-self/fd/", digits, NULL});
}

/* Of this thread, which may have descriptors of its own (unshare): the same number of another's is another file. */
void tz_fd_link(int fd, char out[TZ_FD_LINK_MAX])
{
    char thread[24], digits[24];

    if (has_thread_self()) {
        put_link(out, fd);
        return;
    }
    tz_put_number(digits, (unsigned)fd, 10);
    tz_put_number(thread, (uint64_t)syscall(SYS_gettid), 10);
    tz_join(out, TZ_FD_LINK_MAX, (const char *[]){"/proc/self/task/", thread, "/fd/", digits, NULL});
}

/* By the usual link before it is known whether there are such: then that is known too. */
static ssize_t read_link(int fd, char *out)
{
    char link[TZ_FD_LINK_MAX];
    ssize_t got;

    if (tz_unlikely(!tz_relaxed(&thread_self))) {
        put_link(link, fd);
        got = tz_readlink(link, out, TZ_PATH_MAX);
        if (got >= 0)
            tz_store(&thread_self, 1);
        if (got >= 0 || errno != ENOENT)
            return got;
    }
    tz_fd_link(fd, link);
    return tz_readlink(link, out, TZ_PATH_MAX);
}

size_t tz_fd_path(int fd, char *out)
{
    ssize_t got = read_link(fd, out);

    if (got <= 0 || got >= TZ_PATH_MAX || out[0] != '/')
        return 0;
    out[got] = '\0';
    return (size_t)got;
}
