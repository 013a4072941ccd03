/*
 * Opening a new file again for what the program asked. By its descriptor, so that nobody can put another file under the
 * name in between; by its name where /proc does not show it, and only if that still stands for the same file.
 */
#include "place/writable.h"
#include "base/rawsys.h"
#include "base/text.h"
#include "place/layout_fd.h"

enum { MADE = O_CREAT | O_EXCL | O_TRUNC, TRIES = 8 };

int tz_making_flags(int flags)
{
    return (flags & ~(O_ACCMODE | O_TRUNC)) | O_RDONLY | O_CREAT | O_EXCL;
}

static bool is_same(int fd, int other, struct tz_stat *st)
{
    struct tz_stat second;

    return tz_look(fd, st) == 0 && tz_look(other, &second) == 0 && st->ino == second.ino && st->dev == second.dev;
}

static int by_descriptor(const struct tz_call *call, int fd)
{
    char link[TZ_FD_LINK_MAX];

    tz_fd_link(fd, link);
    return REAL(open)(link, (call->flags & ~(MADE | O_NOFOLLOW)) | O_CLOEXEC);
}

static int by_name(const struct tz_call *call, int fd)
{
    int again = tz_call_open(call, (call->flags & ~MADE) | O_CLOEXEC);
    struct tz_stat st;

    if (again < 0 || is_same(fd, again, &st))
        return again;
    REAL(close)(again);
    errno = ENOENT;
    return -1;
}

static bool no_descriptor_left(void)
{
    return errno == EMFILE || errno == ENFILE;
}

static int open_again(const struct tz_call *call, int fd)
{
    bool flag_stays = call->flags & O_NOFOLLOW; /* the link in /proc cannot be opened with it */
    int again = flag_stays ? by_name(call, fd) : by_descriptor(call, fd);

    for (int i = 0; again < 0 && errno == EINTR && i < TRIES; i++)
        again = by_descriptor(call, fd);
    if (again >= 0 || no_descriptor_left())
        return again;
    return flag_stays ? by_descriptor(call, fd) : by_name(call, fd);
}

/* An access list of the directory took rights away that the file's maker has all the same: lends them for the open. */
static int with_lent_rights(const struct tz_call *call, int fd)
{
    mode_t needed = S_IWUSR | (call->flags & O_RDWR ? S_IRUSR : 0); /* also of access 3 */
    int again, saved = errno;
    struct tz_stat st;

    if (tz_look(fd, &st) || (st.mode & needed) == needed || syscall(SYS_fchmod, fd, (st.mode & 07777) | needed)) {
        errno = saved;
        return -1;
    }
    again = open_again(call, fd);
    saved = errno;
    syscall(SYS_fchmod, fd, st.mode & 07777);
    errno = saved;
    return again;
}

/*
 * There is no number for a second descriptor: the first is given up before. Who has put another file under the name
 * meanwhile is met by the program's own call.
 */
static int in_its_place(const struct tz_call *call, int fd)
{
    struct tz_stat made = {0}, named;
    bool known = tz_look(fd, &made) == 0;

    REAL(close)(fd);
    fd = tz_call_open(call, call->flags & ~MADE);
    if (fd < 0 && no_descriptor_left()) /* another thread has it by now: O_EXCL would say that the file exists */
        return -1;
    if (fd >= 0 && known && tz_look(fd, &named) == 0 && named.ino == made.ino && named.dev == made.dev)
        return fd;
    if (fd >= 0)
        REAL(close)(fd);
    return tz_call_open(call, call->flags);
}

/* Without a layout nobody can have it open to write, and nobody loses anything when it goes. */
static bool unlink_unwritten(const struct tz_create *c, int fd)
{
    int named = tz_call_open(&c->call, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct tz_stat st;
    bool gone = false;

    if (named < 0)
        return false;
    if (is_same(fd, named, &st) && st.size == 0 && tz_layout_missing(fd) == ENODATA)
        gone = syscall(SYS_unlinkat, c->call.dirfd, c->call.path, 0) == 0;
    REAL(close)(named);
    return gone;
}

/* It cannot be opened, as where no OST takes any object: the program's own call is made as if nothing had been there.
 */
static int withdraw(struct tz_create *c, int fd, int error)
{
    bool gone = unlink_unwritten(c, fd);

    REAL(close)(fd);
    if (gone) {
        c->existence = c->call.flags & O_EXCL ? TZ_FRESH : TZ_PERHAPS;
        return tz_call_open(&c->call, c->call.flags);
    }
    errno = error;
    return -1;
}

/* Puts `better` where `fd` is, so that the program sees the number that it would have seen. */
static int replace(const struct tz_call *call, int fd, int better)
{
    if (REAL(dup3)(better, fd, call->flags & O_CLOEXEC) < 0) {
        REAL(close)(fd);
        if (!(call->flags & O_CLOEXEC))
            syscall(SYS_fcntl, better, F_SETFD, 0);
        return better;
    }
    REAL(close)(better);
    return fd;
}

int tz_writable(struct tz_create *c, int fd)
{
    int again = open_again(&c->call, fd);

    if (again < 0 && errno == EACCES)
        again = with_lent_rights(&c->call, fd);
    if (again >= 0)
        return replace(&c->call, fd, again);
    return no_descriptor_left() ? in_its_place(&c->call, fd) : withdraw(c, fd, errno);
}
