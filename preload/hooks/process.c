/* The working directory, the umask and the end of the process. */
#include "base/real.h"
#include "life/exit.h"
#include "life/start.h"
#include "names/paths.h"
#include "place/decide.h"

#include <stdlib.h>
#include <sys/stat.h>

TZ_EXPORT int chdir(const char *path)
{
    int result = REAL(chdir)(path);

    tz_cwd_changed();
    return result;
}

TZ_EXPORT int fchdir(int fd)
{
    int result = REAL(fchdir)(fd);

    tz_cwd_changed();
    return result;
}

TZ_EXPORT mode_t umask(mode_t mask)
{
    mode_t before = REAL(umask)(mask);

    if (tz_enter()) {
        tz_umask_set(mask);
        tz_leave();
    }
    return before;
}

TZ_EXPORT void _exit(int status)
{
    tz_exit(false);
    REAL(_exit)(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

TZ_EXPORT void _Exit(int status)
{
    _exit(status);
}

TZ_EXPORT void quick_exit(int status)
{
    tz_exit(false);
    REAL(quick_exit)(status);
    for (;;)
        syscall(SYS_exit_group, status);
}
