"""A file's attributes without a word to Lustre's servers of data, and what has to ask them, with a limit.

The size of a file is known to its OSTs: `stat` asks each of them (a glimpse) and hangs, so that no signal ends it,
while one's server is down. With AT_STATX_DONT_SYNC a client says what it knows, which is what the MDS noted at the last
close; Lustre 2.12 asks all the same. So a process of its own looks: one that hangs is left behind. A thread would not
do: a process whose thread hangs cannot end.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import stat
import struct
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

FORCE_SYNC, DONT_SYNC = 0x2000, 0x4000
LIMIT_S = 5.0
"""So long is waited for servers."""
MOST_HANGING = 4
"""Processes that hang; with so many no other look is begun."""
_AT_FDCWD, _NOFOLLOW, _BASIC = -100, 0x100, 0x7FF
_BYTES = 256
_STATX = struct.Struct("=16xII4xH2xQQQ8xq8x16x16xq8x8xII")


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
    function: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    return function


def statx(path: str | bytes | os.PathLike[str], flags: int, *, follow: bool = True) -> Attributes | None:
    """None where the C library has no such call (glibc before 2.28). Raises OSError."""
    if (call := _statx()) is None:
        return None
    buffer = ctypes.create_string_buffer(_BYTES)
    if call(_AT_FDCWD, os.fsencode(path), flags | (0 if follow else _NOFOLLOW), _BASIC, buffer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(path))
    *fields, major, minor = _STATX.unpack_from(buffer.raw)
    return Attributes._make((*fields, os.makedev(major, minor)))


def look(path: str | os.PathLike[str], *, follow: bool = True, limit_s: float = LIMIT_S) -> Attributes:
    """What is known without asking servers of data; where that is no size, they are asked, for `limit_s` at most.

    Raises OSError; TimeoutError, which is one, where they do not answer.
    """
    return _lookers.ask(os.path.abspath(os.fsencode(path)), follow, limit_s)


def end() -> None:
    """Leave the processes that look; another look starts one again."""
    _lookers.end()


class _Looker:
    """A process that looks; nothing of this process's is open in it."""

    def __init__(self) -> None:
        from tarazu import signals  # which the process that looks has no path to

        reads, self._to = os.pipe()
        self._of, writes = os.pipe()
        try:
            with signals.as_given():
                os.posix_spawn(
                    COMMAND[0],
                    COMMAND,
                    os.environ,
                    file_actions=[
                        (os.POSIX_SPAWN_DUP2, reads, 0),
                        (os.POSIX_SPAWN_DUP2, writes, 1),
                        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                    ],
                )
        except BaseException:
            self.leave()
            raise
        finally:
            os.close(reads)
            os.close(writes)

    def leave(self) -> None:
        """It ends when it reads on; it may hang until a server is back."""
        os.close(self._to)
        os.close(self._of)

    def ask(self, path: bytes, follow: bool, limit_s: float) -> list[int] | None:
        """An error number, else the attributes; nothing: it has ended. None: no answer in time."""
        try:
            os.write(self._to, b"%d %s\n" % (follow, path.hex().encode()))
        except BrokenPipeError:
            return []
        return self.told(limit_s)

    def told(self, limit_s: float) -> list[int] | None:
        said = b""
        ready = select.poll()
        ready.register(self._of, select.POLLIN)
        while not said.endswith(b"\n"):
            if not ready.poll(1000 * limit_s):
                return None
            if not (part := os.read(self._of, 4096)):
                return []
            said += part
        return [int(number) for number in said.split()]


class _Lookers:
    """As many as threads ask at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Looker] = []
        self._hanging: list[_Looker] = []

    def ask(self, path: bytes, follow: bool, limit_s: float) -> Attributes:
        with self._lock:
            for looker in self._hanging[:]:  # a server may be back
                if (told := looker.told(0)) is not None:
                    self._hanging.remove(looker)
                    self._keep(looker, told)
            if len(self._hanging) >= MOST_HANGING:
                raise _silent(path, limit_s)
            looker = self._idle.pop() if self._idle else _Looker()
        told = looker.ask(path, follow, limit_s)
        with self._lock:
            self._keep(looker, told)
        if told is None:
            raise _silent(path, limit_s)
        if not told:
            raise OSError(errno.EIO, "the process that looks has ended", os.fsdecode(path))
        if len(told) == 1:
            raise OSError(told[0], os.strerror(told[0]), os.fsdecode(path))
        return Attributes(*told)

    def end(self) -> None:
        with self._lock:
            for looker in (*self._idle, *self._hanging):
                looker.leave()
            self._idle, self._hanging = [], []

    def _keep(self, looker: _Looker, told: list[int] | None) -> None:
        if told == []:
            looker.leave()
        else:
            (self._hanging if told is None else self._idle).append(looker)


def _silent(path: bytes, limit_s: float) -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, f"no answer of its servers within {limit_s:g} s", os.fsdecode(path))


COMMAND = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
_lookers = _Lookers()
os.register_at_fork(after_in_child=_lookers.__init__)  # type: ignore[misc]


def _asked(path: bytes, follow: bool) -> Attributes:
    attributes = statx(path, DONT_SYNC, follow=follow)
    if attributes is not None and (attributes.st_size or not stat.S_ISREG(attributes.st_mode)):
        return attributes
    of = os.stat(path, follow_symlinks=follow)
    return Attributes(*(int(getattr(of, name)) for name in Attributes._fields))


def _serve() -> None:
    """A line `FOLLOW PATH`, the path in hexadecimal digits; answered by an error number or the attributes."""
    for line in sys.stdin.buffer:
        follow, path = line.split()
        try:
            told = _asked(bytes.fromhex(path.decode()), follow == b"1")
            answer = b"%s\n" % b" ".join(b"%d" % value for value in told)
        except OSError as error:
            answer = b"%d\n" % (error.errno or errno.EIO)
        os.write(1, answer)


if __name__ == "__main__":
    _serve()
