/* libc can only tell the umask by changing it; the kernel shows it since 4.7. 022 where it does not. */
#include "place/umask.h"
#include "base/text.h"
#include "base/rawsys.h"
#include "process/state.h"

static int known = -1; /* atomic */

void tz_umask_set(mode_t mask)
{
    if (tz_owner_quick())
        tz_store(&known, (int)(mask & 0777));
}

static mode_t read_umask(void)
{
    int fd = tz_sys_open("/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
    const char *at;
    char text[512];
    long n;

    if (fd < 0)
        return 022;
    n = syscall(SYS_read, fd, text, sizeof text - 1);
    tz_sys_close(fd);
    text[n > 0 ? n : 0] = '\0';
    at = strstr(text, "\nUmask:");
    if (!at)
        return 022;
    for (at += 7; *at == '\t' || *at == ' '; at++)
        ;
    return (mode_t)tz_read_number(&at, 8);
}

mode_t tz_umask(void)
{
    int mask = tz_load(&known);

    if (mask >= 0)
        return (mode_t)mask;
    mask = (int)read_umask();
    tz_umask_set((mode_t)mask);
    return (mode_t)mask;
}
