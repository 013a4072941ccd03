"""Statistics files, read within bounds: whatever lies in their place, a read ends, and takes little memory.

A FIFO, a device or a directory is refused without being opened for long; a file that is larger than any of its kind
can be, or that grows while it is read, is given up at the limit. NULs at the end are no content: `tar` fills up a file
of sysfs with them to the size that it claims to have.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tarazu.units import MIB

MAX_BYTES = 4 * MIB
"""Of one statistics file: the largest, `stats` of a server with hundreds of rows, has 100 KB."""
CHUNK_BYTES = MIB // 4
"""Larger ones do not fit the processor's cache: slower."""
SMALL_BYTES = MIB // 4
"""Of one that is read each second."""
_PIECE_BYTES = 1 << 16
_SURELY_ALL_BYTES = 1 << 11
"""Fewer are the whole file: the kernel's seq_file goes on to the end of a page while rows fit in, and rows are shorter
than half a page."""
_FILLED_BYTES = 4096
"""Files of sysfs claim a page."""
MAX_LINE_CHARACTERS = 4096
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def text(path: str | Path, limit_bytes: int = MAX_BYTES) -> str:
    """The whole file; bytes that are not UTF-8 become replacement characters.

    Raises OSError, and ValueError for what is no regular file or has more than `limit_bytes`.
    """
    descriptor = _regular(path)
    try:
        # Most are read at once: the kernel gives a page or more at a time, and nothing at the end.
        content = os.read(descriptor, min(limit_bytes + 1, _PIECE_BYTES))
        while piece := os.read(descriptor, min(limit_bytes + 1 - len(content), _PIECE_BYTES)):
            content += piece
    finally:
        os.close(descriptor)
    if len(content) > limit_bytes:
        raise ValueError(f"expected at most {limit_bytes} bytes, found more")
    return content.rstrip(b"\0").decode("utf-8", "replace")


def again(path: str, limit_bytes: int = SMALL_BYTES) -> str:
    """As `text`, for who reads the same small file each second, and found it to be one before: without a look at what
    it is, which takes as long as reading it. Raises as `text`.

    Opened each time: a file of debugfs that is kept open keeps its module from being unloaded (`lustre_rmmod`), and
    opening 13 of them is some 5 % of what a daemon costs that looks each second.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        content = os.read(descriptor, _PIECE_BYTES)
        if not 0 < len(content) < _SURELY_ALL_BYTES:
            while len(content) <= limit_bytes and (piece := os.read(descriptor, _PIECE_BYTES)):
                content += piece
    finally:
        os.close(descriptor)
    if len(content) > limit_bytes:
        raise ValueError(f"expected at most {limit_bytes} bytes, found more")
    return content.rstrip(b"\0").decode("utf-8", "replace")


def chunks(path: str | Path, limit_bytes: int, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The file in pieces of `chunk_bytes`, the last one apart. Raises as `text`, once the limit is passed."""
    left = limit_bytes
    # A buffered reader puts the kernel's answers, of a page each, together.
    with open(_regular(path), "rb", buffering=min(chunk_bytes, 1 << 16)) as file:
        while piece := file.read(min(chunk_bytes, left + 1)):
            left -= len(piece)
            if left < 0:
                raise ValueError(f"expected at most {limit_bytes} bytes, found more")
            content = piece.rstrip(b"\0")
            yield content if len(piece) - len(content) <= _FILLED_BYTES else piece


def _regular(path: str | Path) -> int:
    """A descriptor; nothing but a regular file is opened, since opening alone may block or act."""
    _check(os.stat(path).st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _check(os.fstat(descriptor).st_mode)
    except ValueError:
        os.close(descriptor)
        raise
    return descriptor


def _check(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise ValueError(f"expected a file, found {_KINDS.get(stat.S_IFMT(mode), 'something else')}")


def lines(text: str) -> list[str]:
    """The lines of a statistics file; one that is longer than any of Lustre's is left out, for an expression may take
    the square of its length.
    """
    return [line for line in text.splitlines() if len(line) <= MAX_LINE_CHARACTERS]
