"""Files from a list: `lfs find DIR -type f --printf '%s %p\\n'`, `find -printf '%s %p\\0'`, `du -ab`; a line each.

A line is a size in bytes, then white space and a path; or a size alone. A path that other paths lie below is no file:
`du -ab` lists directories, too, with the sum of what is in them. A list is read twice, in blocks: memory grows with the
number of directories, not with that of lines. A name with a line break is cut there: what stands behind it is one
more line, which is odd unless it looks like a size. Lists with NUL for the end of a line have no such names.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tarazu.errors import BadInput
from tarazu.parts.pfl.sizes import LARGEST_BYTES, Halves
from tarazu.units import counted, human_bytes

BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 16
"""Paths are shorter (`PATH_MAX` is 4096)."""
MOST_DIGITS = 19
"""Of the largest size there is."""


WANTED = "files with their sizes in bytes, as `du -ab` or `find -type f -printf '%s %p\\n'` print them"
MOST_LOOKED_AT = 32
"""Paths that are looked up: if all are directories here, the list is one of directories."""
LEAST_HIDDEN_BYTES = 1 << 20
MOST_HIDDEN_SHARE = 0.1
"""A directory's own size is below the one; so much of all may be in files that are not listed."""
MOST_IN_UNITS = 0.01
"""Of `du -h --apparent-size` sizes below 1 KiB have no unit; names with a line break are rare."""
DIRECTORY_BYTES, DIRECTORY_BLOCKS = 4096, 4
"""Own size of a usual directory, and that in KiB."""
BLOCK_KIB, SECTOR_BYTES = 4, 512
"""Where directories take no blocks (XFS), sizes in KiB are multiples of the one, not all of the other."""
ALIGNED_BYTES = 1 << 16
"""Few files have a multiple of it and `DIRECTORY_BYTES` more; a directory of files of round sizes has."""

_TIME = re.compile(rb"(\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d(\.\d+)?( [+-]\d{4})?)?)?|\d{9,11}(\.\d+)?)\t")
"""What `du --time` has between size and path."""
_IN_UNITS = re.compile(rb"\d+([.,]\d+)?[KMGTPEZY](i?B)?", re.IGNORECASE)
"""A size as `du -h` prints it."""
_LONG = re.compile(rb"(\d+ +)?[-dlbcps]([-r][-w][-xsStT]){3}[.+@]? ")
"""What `ls -l` and `find -ls` have behind a number that is no size."""
_MARK, _MARKS_16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
"""What some editors and shells begin a text with, as UTF-8 and UTF-16."""
_TOTAL = b"total"
"""The last line of `du -c`."""


class Listed(NamedTuple):
    """What the lines of a list were."""

    files: int
    odd: int
    directories: int


def read(path: str, into: Halves, progress: Callable[[str], None] = lambda text: None) -> Listed:
    """Add the files of a list (`-`: standard input).

    Raises BadInput for what cannot be read, and for a list without any size, in other units, or of directories alone.
    """
    with ExitStack() as stack:
        try:
            file = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
            if not file.seekable():
                progress("reading")
                pipe, file = file, stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(pipe, file)
                file.seek(0)
            begin = file.tell()
            mark = file.read(len(_MARK))
            if mark.startswith(_MARKS_16):
                raise BadInput(path, "lines with a size in bytes and a path", "UTF-16")
            begin += len(_MARK) * (mark == _MARK)
            file.seek(begin)
            held = _held(file)
            file.seek(begin)
            return _add(file, path, held, into, progress)
        except OSError as error:
            raise BadInput(path, "a readable list of files", error.strerror) from None


class _Held:
    """What is listed directly in a directory."""

    __slots__ = ("bytes", "entries")

    def __init__(self) -> None:
        self.bytes = self.entries = 0


def _held(file: BinaryIO) -> dict[int, _Held]:
    """By the hash of a directory's path, all that are named and all above them."""
    held: dict[int, _Held] = {}
    last, of = None, _Held()
    for lines in _lines(file):
        for line in lines:
            size, name = _parsed(line)
            if size < 0 or name is None or not name:
                continue
            directory = name.rpartition(b"/")[0]
            if directory != last:
                last, above = directory, directory
                while hash(above) not in held:
                    held[hash(above)] = _Held()
                    above = above.rpartition(b"/")[0]
                of = held[hash(directory)]
            of.bytes += size
            of.entries += 1
    return held


def _add(
    file: BinaryIO, path: str, held: dict[int, _Held], into: Halves, progress: Callable[[str], None]
) -> Listed:
    files = odd = in_units = size_of_all = 0
    seen = _Directories()
    first: list[bytes] = []
    aligned = in_kib = in_sectors = True
    for lines in _lines(file):
        for line in lines:
            size, name = _parsed(line)
            if size < 0:
                odd += bool(line)
                in_units += bool(_IN_UNITS.fullmatch(line.split(None, 1)[0] if line.strip() else b""))
                continue
            if name is None:
                files += 1
                into.add(b"%d" % files, b"%d" % files, size, kind="line")
                continue
            inside = held.get(hash(name))
            is_total = name == _TOTAL and (seen.count or size == size_of_all)
            if inside is not None or is_total or line.endswith(b"/"):
                seen.add(size, inside)
                continue
            files += 1
            size_of_all += size
            aligned = aligned and size % ALIGNED_BYTES == DIRECTORY_BYTES
            in_kib, in_sectors = in_kib and size % BLOCK_KIB == 0, in_sectors and size % SECTOR_BYTES == 0
            if len(first) < MOST_LOOKED_AT:
                first.append(name)
            directory = name.rpartition(b"/")[0]
            into.add(directory or name, name, size, kind="directory" if directory else "line")
        progress(f"{files} files")
    if in_units > MOST_IN_UNITS * files:
        raise BadInput(path, WANTED, f"{counted(in_units, 'size')} in other units, as of `du -h`")
    if not files and not seen.count:
        found = counted(odd, "other line") if odd else "nothing"
        raise BadInput(path, "lines with a size in bytes and a path", found)
    if seen.are_in_blocks or (seen.are_empty and in_kib and not in_sectors):
        raise BadInput(path, WANTED, "sizes in blocks, as of `du` without -b")
    if not files or _directories(first) or (aligned and seen.are_usual):
        raise BadInput(path, WANTED, "directories alone, as of `du` without -a")
    if seen.hidden_bytes > MOST_HIDDEN_SHARE * (size_of_all + seen.hidden_bytes):
        found = f"directories that hold {human_bytes(seen.hidden_bytes)} in files that are not listed"
        raise BadInput(path, WANTED, found)
    return Listed(files, odd, seen.count)


class _Directories:
    """Those that are listed, by their own size: the sum in their line without what is listed in them."""

    def __init__(self) -> None:
        self.count = self.hidden_bytes = 0
        self._own = set[int]()
        self._beyond_blocks = False

    def add(self, size: int, inside: _Held | None) -> None:
        self.count += 1
        if inside is None:
            return
        own = size - inside.bytes
        self.hidden_bytes += max(0, own - LEAST_HIDDEN_BYTES)
        self._beyond_blocks |= not -inside.entries <= own <= DIRECTORY_BLOCKS
        if len(self._own) < MOST_LOOKED_AT:
            self._own.add(own)

    @property
    def are_usual(self) -> bool:
        return self._own == {DIRECTORY_BYTES}

    @property
    def are_empty(self) -> bool:
        return self._own == {0}

    @property
    def are_in_blocks(self) -> bool:
        """In KiB, of which a usual directory has 4 and a large one a multiple; or in units that du rounds up to."""
        in_kib = DIRECTORY_BLOCKS in self._own and not any(o < 0 or o % DIRECTORY_BLOCKS for o in self._own)
        return in_kib or bool(self._own - {0} and not self._beyond_blocks)


def _directories(names: list[bytes]) -> bool:
    """Whether most of these are directories here."""
    return 2 * sum(map(os.path.isdir, names)) > len(names)


def _parsed(line: bytes) -> tuple[int, bytes | None]:
    """(size, path); None for a line without a path, and a size below 0 for one without a size."""
    size, *rest = line.split(None, 1) or [b""]
    if not (size.isdigit() and len(size) <= MOST_DIGITS and (number := int(size)) <= LARGEST_BYTES):
        return -1, None
    if not rest:
        return number, None
    name = rest[0]
    if _LONG.match(name):
        return -1, None
    if name[:1].isdigit() and (time := _TIME.match(name)):
        name = name[time.end() :]
    if name[:1] == b"." or name[-1:] == b"/" or b"//" in name or b"/./" in name:
        name = b"/" * name.startswith(b"/") + b"/".join(p for p in name.split(b"/") if p not in (b"", b"."))
        name = name.rstrip(b"/")
    return number, name


def _lines(file: BinaryIO) -> Iterator[list[bytes]]:
    """Whole lines, a block at a time; of one that is too long only its beginning, which is no size."""
    rest, long, end = b"", False, b""
    while block := file.read(BLOCK_BYTES):
        if not end:
            end = b"\0" if b"\0" in block else b"\n"
        *lines, last = block.split(end)
        if lines and end == b"\n" and lines[0].endswith(b"\r"):
            lines = [line.removesuffix(b"\r") for line in lines]
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
