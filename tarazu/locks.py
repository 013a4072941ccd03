"""Locks on files, and what a file system answers that has none.

A Lustre mounted without `-o flock` says ENOSYS, others ENOLCK, EOPNOTSUPP or EINVAL: none of these means that somebody
holds the lock.
"""

from __future__ import annotations

import errno
import fcntl
import os

from tarazu.errors import StoreError

EXPECTED = "a file system with locks (a Lustre mounted with -o flock)"

_HELD = {errno.EWOULDBLOCK, errno.EACCES}
"""EACCES: where flock is made of POSIX locks."""


def take(descriptor: int, how: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> bool:
    """False where the file system has no locks. Raises BlockingIOError while another one holds it."""
    return not _refused(descriptor, how)


def need(descriptor: int, where: str | os.PathLike[str], how: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> None:
    """As `take`, for what is not safe without a lock. Raises StoreError where there are none, BlockingIOError."""
    if why := _refused(descriptor, how):
        raise StoreError(os.fspath(where), EXPECTED, why)


def missing(directory: str | os.PathLike[str]) -> str:
    """Why there are no locks in this directory; empty where there are, or it cannot be opened."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return _refused(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return ""
    finally:
        os.close(descriptor)


def _refused(descriptor: int, how: int) -> str:
    try:
        fcntl.flock(descriptor, how)
    except OSError as error:
        if error.errno in _HELD:
            raise BlockingIOError(error.errno, error.strerror) from None
        return error.strerror or str(error)
    return ""
