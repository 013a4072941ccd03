/* Opening again as if we had not been there, and leaving no file behind where that fails. */
#include "place/refuse.h"
#include "base/clock.h"
#include "base/rawsys.h"
#include "place/layout_fd.h"

#include <stdlib.h>
#include <sys/xattr.h>

/*
 * No OST takes any object: the open fails as it would have, and leaves no empty file of ours behind. Without a layout
 * nobody can have written to it.
 */
static int withdraw(const struct tz_create *c, int fd, int error)
{
    int named = tz_call_open(&c->call, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct tz_stat st;

    if (named >= 0) {
        if (c->existence == TZ_FRESH && tz_is_same(fd, named, &st) && st.size == 0 &&
            fgetxattr(fd, XATTR_LUSTRE_LOV, NULL, 0) < 0 && errno == ENODATA)
            syscall(SYS_unlinkat, c->call.dirfd, c->call.path, 0);
        REAL(close)(named);
    }
    REAL(close)(fd);
    errno = error;
    return -1;
}

void tz_refused(struct tz_create *c, int error)
{
    tz_mount_doubt(c->where.mount, error);
    c->outcome = tz_load(&c->where.mount->foreign) ? TZ_SKIPPED : TZ_REFUSED;
    c->refusal = c->outcome == TZ_REFUSED ? (uint16_t)error : TZ_NO_LAYOUTS;
    c->lov_length = 0;
}

/* The layout was refused: the file gets the default one, as if we had not been there. */
int tz_refuse(struct tz_create *c, int fd, int error)
{
    const struct tz_call *call = &c->call;
    struct tz_stat st;
    int again;

    tz_refused(c, error);
    again = tz_call_reopen(call, fd);
    if (again < 0 && tz_look(fd, &st) == 0 && !(st.mode & S_IWUSR)) {
        /* An access list of the directory took our own right to write away: lend it for the second open. */
        if (syscall(SYS_fchmod, fd, (st.mode & 07777) | S_IWUSR) == 0) {
            again = tz_call_reopen(call, fd);
            syscall(SYS_fchmod, fd, st.mode & 07777);
        }
    }
    if (again >= 0)
        fd = again;
    /* A second open on this client may have asked nobody, and then nobody has made the layout. */
    if (again >= 0 && tz_layout_missing(fd) != ENODATA)
        return fd;
    error = tz_layout_set_default(fd, c->scratch);
    if (error && error != EEXIST)
        return withdraw(c, fd, error);
    if (tz_layout_missing(fd) != ENODATA)
        return fd;
    /* Layouts of this user are ignored in silence: the MDS makes one when nobody here has the file open any more. */
    tz_store(&c->where.mount->foreign, 1);
    REAL(close)(fd);
    return tz_call_open(call, call->flags & ~(O_CREAT | O_EXCL | O_TRUNC));
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
