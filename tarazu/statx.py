"""A file's attributes without a word to Lustre's servers of data, and what has to ask them, with a limit.

The size of a file is known to its OSTs: `stat` asks each of them (a glimpse) and hangs, uninterruptibly, while one's
server is down. With AT_STATX_DONT_SYNC a client says what it knows, which is what the MDS noted at the last close.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import threading
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

FORCE_SYNC, DONT_SYNC = 0x2000, 0x4000
LIMIT_S = 5.0
"""So long is waited for servers."""
MOST_HANGING = 4
"""Looks that hang; with so many others are not begun."""
_AT_FDCWD, _NOFOLLOW, _BASIC = -100, 0x100, 0x7FF
_BYTES = 256
_STATX = struct.Struct("=16xII4xH2xQQQ8xq8x16x16xq8x8xII")
_hanging: set[threading.Thread] = set()


class Attributes(NamedTuple):
    """As `os.stat_result` has them; times in whole seconds."""

    st_nlink: int
    st_uid: int
    st_mode: int
    st_ino: int
    st_size: int
    """As the MDS noted it; 0 where nobody noted it."""
    st_blocks: int
    st_atime: int
    st_mtime: int
    st_dev: int


@cache
def _statx() -> Callable[..., int] | None:
    """Once: ctypes makes a class for each library that is opened, and this is called every second."""
    found: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    return found


def statx(path: str | os.PathLike[str], flags: int, *, follow: bool = True) -> Attributes | None:
    """None where the C library has no such call (glibc before 2.28). Raises OSError."""
    if (call := _statx()) is None:
        return None
    buffer = ctypes.create_string_buffer(_BYTES)
    if call(_AT_FDCWD, os.fsencode(path), flags | (0 if follow else _NOFOLLOW), _BASIC, buffer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fspath(path))
    *found, major, minor = _STATX.unpack_from(buffer.raw)
    return Attributes._make((*found, os.makedev(major, minor)))


def look(path: str | os.PathLike[str], *, follow: bool = True, limit_s: float = LIMIT_S) -> Attributes:
    """What is known without asking servers of data; where that is no size, they are asked, for `limit_s` at most.

    Raises OSError; TimeoutError, which is one, where they do not answer.
    """
    found = statx(path, DONT_SYNC, follow=follow)
    if found is not None and (found.st_size or not stat.S_ISREG(found.st_mode)):
        return found
    return within(lambda: _asked(path, follow), os.fspath(path), limit_s)


def _asked(path: str | os.PathLike[str], follow: bool) -> Attributes:
    found = os.stat(path, follow_symlinks=follow)
    return Attributes(*(int(getattr(found, name)) for name in Attributes._fields))


def within(ask: Callable[[], Attributes], path: str, limit_s: float) -> Attributes:
    """In a thread, which is left behind where it hangs."""
    for thread in [thread for thread in _hanging if not thread.is_alive()]:
        _hanging.discard(thread)
    told: list[Attributes | OSError] = []

    def tell() -> None:
        try:
            told.append(ask())
        except OSError as error:
            told.append(error)

    if len(_hanging) < MOST_HANGING:
        thread = threading.Thread(target=tell, name="tarazu-look", daemon=True)
        thread.start()
        thread.join(limit_s)
        if not told:
            _hanging.add(thread)
    if not told:
        raise TimeoutError(errno.ETIMEDOUT, f"no answer of its servers within {limit_s:g} s", path)
    (answer,) = told
    if isinstance(answer, OSError):
        raise answer
    return answer
