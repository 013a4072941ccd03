"""Files from a list: `lfs find DIR -type f --printf '%s %p\\n'`, `find -printf '%s %p\\0'`, `du -b`; a line each.

A line is a size in bytes, then white space and a path; or a size alone. Read in blocks: memory does not grow with the
list, however long it or one of its lines is. A name with a line break is cut there: what stands behind it is one
more line, which is odd unless it looks like a size. Lists with NUL for the end of a line have no such names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from tarazu.errors import BadInput
from tarazu.pfl.sizes import LARGEST_BYTES, Halves
from tarazu.units import counted

BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 16
"""Paths are shorter (`PATH_MAX` is 4096)."""
MOST_DIGITS = 19
"""Of the largest size there is."""


def read(path: str, into: Halves, progress: Callable[[str], None] = lambda text: None) -> tuple[int, int]:
    """Add the files of a list (`-`: standard input); how many lines were files, and how many were odd.

    Raises BadInput for what cannot be read, and for a list without any size.
    """
    try:
        file = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise BadInput(path, "a readable list of files", error.strerror) from None
    try:
        good, odd = _read(file, into, progress)
    except OSError as error:
        raise BadInput(path, "a readable list of files", error.strerror) from None
    finally:
        if path != "-":
            file.close()
    if not good:
        found = counted(odd, "other line") if odd else "nothing"
        raise BadInput(path, "lines with a size in bytes and a path", found)
    return good, odd


def _read(file: BinaryIO, into: Halves, progress: Callable[[str], None]) -> tuple[int, int]:
    good = odd = 0
    for lines in _lines(file):
        for line in lines:
            size, *rest = line.split(None, 1) or [b""]
            if not (size.isdigit() and len(size) <= MOST_DIGITS and (number := int(size)) <= LARGEST_BYTES):
                odd += bool(line)
                continue
            good += 1
            name = rest[0] if rest else b""
            directory = name.rpartition(b"/")[0]
            if directory:
                into.add(directory, name, number, kind="directory")
            else:
                name = name or b"%d" % good
                into.add(name, name, number, kind="line")
        progress(f"{good} files")
    return good, odd


def _lines(file: BinaryIO) -> Iterator[list[bytes]]:
    """Whole lines, a block at a time; of one that is too long only its beginning, which is no size."""
    rest, long, end = b"", False, b""
    while block := file.read(BLOCK_BYTES):
        if not end:
            end = b"\0" if b"\0" in block else b"\n"
        *lines, last = block.split(end)
        if lines:
            lines[0] = b"?" if long else rest + lines[0]
            rest, long = last, False
            yield lines
        else:
            rest += last
        if len(rest) > LONGEST_LINE_BYTES:
            rest, long = b"", True
    if rest or long:
        yield [b"?" if long else rest]


def sources(paths: list[str]) -> list[str]:
    """Each list once; standard input at most once. Raises BadInput."""
    known: dict[str, None] = {}
    for path in paths:
        if path != "-" and Path(path).is_dir():
            raise BadInput(
                path, "a list of files (`lfs find DIR -type f --printf '%s %p\\n'`)", "a directory"
            )
        known[path if path == "-" else os.path.realpath(path)] = None
    return list(known)
