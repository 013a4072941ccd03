"""The outer form of a Darshan log: its header, and its regions as they are once expanded.

Formats 3.00 to 3.41, of either byte order, compressed by zlib, bzip2 or not at all. Facts of the form are in Darshan's
`darshan-log-format.h`.
"""

from __future__ import annotations

import bz2
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from tarazu.errors import TraceError

MAGIC = 6567223
VERSIONS = ("3.00", "3.10", "3.20", "3.21", "3.41")
MODULES = (
    *("NULL", "POSIX", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR", "BG/Q", "LUSTRE", "STDIO"),
    *("DXT_POSIX", "DXT_MPIIO", "MDHIM", "APXC", "APMPI", "HEATMAP", "DFS", "DAOS"),
)
"""By their number in the header of format 3.41."""
_LATER = {"3.20": ("H5D",), "3.41": ("PNETCDF_VAR",)}
"""Format → modules that it added in the midst of the others."""
_COUNT = {"3.41": 64}
"""Modules in the header by version of the format; before, 16."""
_NONE = 2
_STREAMS: dict[int, Callable[[], Any]] = {0: zlib.decompressobj, 1: bz2.BZ2Decompressor}
_PIECE = 1 << 16
_MOST_BYTES = 1 << 34
"""Of one region once expanded."""


class ModuleRegion(msgspec.Struct, frozen=True):
    version: int
    """Of the module's records."""
    partial: bool
    """Records are missing: the recorder had no more memory."""
    start: int
    length: int


class Regions(msgspec.Struct, frozen=True):
    """One open log; use `open_regions`."""

    where: str
    version: str
    order: str
    """`<` or `>`, as struct and numpy write it."""
    modules: dict[str, ModuleRegion]
    """Those that have records, in the order of the log."""
    _content: mmap.mmap
    _compression: int
    _job: tuple[int, int]
    _names: tuple[int, int]

    def job(self) -> bytes:
        return self._expanded(*self._job)

    def names(self) -> bytes:
        return self._expanded(*self._names)

    def records(self, module: str) -> bytes:
        """All records of a module, one after another. Raises TraceError for a region that is not whole."""
        of = self.modules[module]
        return self._expanded(of.start, of.start + of.length)

    def _expanded(self, start: int, end: int) -> bytes:
        if self._compression == _NONE:
            return self._content[start:end]
        parts: list[bytes] = []
        at, size = start, 0
        try:
            while at < end:  # every rank's part of a region is a stream of its own
                stream = _STREAMS[self._compression]()
                while not stream.eof:
                    if at >= end:
                        raise EOFError("a stream that does not end")
                    piece = self._content[at : min(at + _PIECE, end)]
                    parts.append(stream.decompress(piece))
                    at += len(piece) - len(stream.unused_data)
                    size += len(parts[-1])
                    if size > _MOST_BYTES:
                        raise EOFError(f"a region of more than {_MOST_BYTES >> 30} GiB")
        except (zlib.error, OSError, EOFError) as error:
            raise TraceError(self.where, "a Darshan log that is whole", f"{error} at byte {at}") from None
        return b"".join(parts)


@contextmanager
def open_regions(where: str) -> Iterator[Regions]:
    """Open a log, close it at the end. Raises TraceError, one line, for what is no Darshan log or is cut off."""
    try:
        mode = os.stat(where).st_mode
        if not stat.S_ISREG(mode):
            raise TraceError(
                where, "a Darshan log", "a directory" if stat.S_ISDIR(mode) else "no regular file"
            )
        with open(where, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise TraceError(where, "a Darshan log", error.strerror or str(error)) from None
    except ValueError:
        raise TraceError(where, "a Darshan log", "an empty file") from None
    with content:
        yield _header(where, content)


def _header(where: str, content: mmap.mmap) -> Regions:
    version = content[:8].split(b"\0")[0].decode("ascii", "replace")
    if version not in VERSIONS:
        raise TraceError(where, f"a Darshan log of format {VERSIONS[0]} to {VERSIONS[-1]}", _what(content))
    count = _COUNT.get(version, 16)
    order = "<" if content[8:16] == struct.pack("<q", MAGIC) else ">"
    # As the compiler lays out struct darshan_header: the flags stand at a multiple of their size.
    flags = "B7xQ" if count > 16 else "B3xI"
    form = struct.Struct(f"{order}8sq{flags}{2 * (1 + count)}Q{count}I")
    if len(content) <= form.size:
        raise TraceError(where, f"a Darshan log of more than {form.size} bytes", len(content))
    _, magic, compression, partial, *rest = form.unpack(content[: form.size])
    if magic != MAGIC or compression not in (*_STREAMS, _NONE):
        raise TraceError(where, "a Darshan log with its magic number", (magic, compression))
    maps = [(rest[2 * i], rest[2 * i + 1]) for i in range(1 + count)]
    # The job's region has no entry: it goes from the header to the first region.
    job_end = min((start for start, _ in maps if start), default=len(content))
    for start, length in [(form.size, job_end - form.size), *(of for of in maps if of[1])]:
        if not form.size <= start < start + length <= len(content):
            cut = f"one that is cut off: {len(content)} bytes of at least {start + length}"
            text = cut if form.size <= start and length else f"a region from byte {start} to {start + length}"
            raise TraceError(where, "a Darshan log that is whole", text)
    later = {name for format_, names in _LATER.items() if version < format_ for name in names}
    known = [name for name in MODULES if name not in later]
    versions = rest[2 * (1 + count) :]
    modules = {
        name: ModuleRegion(versions[i], bool(partial >> i & 1), *maps[1 + i])
        for i, name in enumerate(known[:count])
        if maps[1 + i][1]
    }
    names = (maps[0][0], maps[0][0] + maps[0][1])
    return Regions(where, version, order, modules, content, compression, (form.size, job_end), names)


def _what(content: mmap.mmap) -> str:
    """What a file is that is no log that can be read, in a word that a person knows."""
    first = content[:4096]
    if first[:2] in (b"2.", b"1."):
        return f"format {first[:4].decode('ascii', 'replace')} (`darshan-convert` makes a newer one)"
    packed = (b"BZh", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\xfd7zXZ")
    if first.startswith(packed) or first[257:262] == b"ustar":
        return "a compressed file (unpack it first)"
    try:
        text = first[: max(1, len(first) - 3)].decode()
    except UnicodeDecodeError:
        return "a file of another kind"
    return "a text file" if text.isprintable() or "\n" in text else "a file of another kind"
