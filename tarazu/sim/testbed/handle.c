/* The open handle for writing that a client has of a file whose layout is to come. */
#include "tb.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A handle is a lock of the descriptor's on a byte far beyond all data, which goes with the descriptor. Another process
 * of this client that opens the file shares the handle.
 */
static struct flock lock_of(short type, bool any)
{
    off_t client = ((off_t)1 << 62) + ((off_t)tb_client() << 32);

    return (struct flock){.l_type = type, .l_start = client + (any ? 0 : getpid()), .l_len = any ? 1ll << 32 : 1};
}

void handle_hold(int fd)
{
    struct flock lock = lock_of(F_WRLCK, false);

    syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock);
}

/* A layout was set, or refused: the next open asks the MDS, and locks of the program meet none of ours. */
void handle_forget(int fd)
{
    struct flock lock = lock_of(F_UNLCK, true);
    int saved = errno;

    syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock);
    errno = saved;
}

bool handle_of_client(int fd)
{
    struct flock lock = lock_of(F_WRLCK, true);

    return syscall(SYS_fcntl, fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
