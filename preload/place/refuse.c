/* What a refused layout is recorded as, and opening again what liblustreapi made and did not give away. */
#include "place/refuse.h"
#include "base/clock.h"
#include "base/rawsys.h"
#include "place/layout_fd.h"

#include <stdlib.h>
#include <sys/xattr.h>

void tz_refused(struct tz_create *c, int error)
{
    tz_mount_doubt(c->where.mount, error);
    c->outcome = tz_load(&c->where.mount->foreign) ? TZ_SKIPPED : TZ_REFUSED;
    c->refusal = c->outcome == TZ_REFUSED ? (uint16_t)error : TZ_NO_LAYOUTS;
    c->lov_length = 0;
}

/* An empty file of this moment without a layout, as liblustreapi leaves one that gets none: nobody can have written. */
static bool left_behind(const struct tz_call *call)
{
    int named = tz_call_open(call, O_PATH | O_NOFOLLOW | O_CLOEXEC), saved = errno;
    struct tz_stat st;
    bool empty;

    if (named < 0)
        return false;
    empty = tz_look(named, &st) == 0 && S_ISREG(st.mode) && st.size == 0 && st.uid == tz_euid() &&
            llabs((long long)tz_about_now_s() - st.changed_s) < 5;
    REAL(close)(named);
    empty = empty && lgetxattr(call->path, XATTR_LUSTRE_LOV, NULL, 0) < 0 && errno == ENODATA;
    errno = saved;
    return empty;
}

int tz_refuse_unopened(struct tz_create *c, int error)
{
    int fd;

    tz_refused(c, error);
    fd = tz_call_open(&c->call, c->call.flags & ~(O_CREAT | O_EXCL | O_TRUNC));
    if (fd >= 0) {
        c->existence = TZ_FRESH;
        return fd;
    }
    if (errno != ENOENT && left_behind(&c->call))
        syscall(SYS_unlinkat, AT_FDCWD, c->call.path, 0); /* or O_EXCL would say that it exists */
    return tz_call_open(&c->call, c->call.flags);
}
