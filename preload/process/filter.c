/* The line `Seccomp:` of the thread's status. */
#include "process/filter.h"
#include "base/rawsys.h"

#include <sys/prctl.h>

static int open_status(void)
{
    int fd = tz_sys_open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC, 0);

    return fd < 0 && errno == ENOENT ? tz_sys_open("/proc/self/status", O_RDONLY | O_CLOEXEC, 0) : fd;
}

/* Groups, of which there may be thousands, stand before the line: it may lie across two pieces. */
static bool is_filtered(int fd)
{
    static const char name[] = "\nSeccomp:\t";
    char text[960]; /* mostly it is within */
    size_t kept = 0;

    for (;;) {
        ssize_t length = syscall(SYS_read, fd, text + kept, sizeof text - 1 - kept);
        char *line;

        if (length <= 0)
            return length < 0; /* no such line: a kernel without */
        length += (ssize_t)kept;
        text[length] = '\0';
        line = strstr(text, name);
        if (line && line[sizeof name - 1])
            return line[sizeof name - 1] != '0';
        kept = (size_t)length < sizeof name ? (size_t)length : sizeof name;
        memmove(text, text + length - kept, kept);
    }
}

bool tz_filtered(void)
{
    int fd = open_status();
    bool filtered;

    if (fd < 0) /* without /proc, as in a small root, there is only this way */
        return errno != ENOENT || syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) > 0;
    filtered = is_filtered(fd);
    tz_sys_close(fd);
    return filtered;
}
