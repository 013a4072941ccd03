"""Frames: how a ledger's log and its snapshots lie on disk (docs/formats.md).

A file is a header and frames behind one another; each has a checksum, and begins with a mark by which the next one is
found behind a damaged place.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import StoreError

VERSION = 1
MAGIC = b"tarazu ledger\n\0\0"
_HEADER = struct.Struct("<16sIQI")
"""Magic, version, number of the last record before the file's first, CRC-32 of these."""
HEADER_BYTES = _HEADER.size
MARK = b"\xf5LF1"
"""No UTF-8, so that no name holds it."""
_FRAME = struct.Struct("<4sIQI")
"""Mark, bytes of the payload, number of its first record, CRC-32 of both numbers and the payload."""
MAX_PAYLOAD_BYTES = 1 << 30


class Frame(NamedTuple):
    offset: int
    first: int
    """Number of its first record."""
    payload: bytes
    end: int
    """Offset behind it."""


class Damage(NamedTuple):
    """A place in a file that holds no frame."""

    path: Path
    offset: int
    size_bytes: int
    why: str
    """What was expected and found."""
    at_end: bool
    """Nothing that can be read is behind it: what a write leaves that was cut off."""

    def __str__(self) -> str:
        return f"{self.path}: byte {self.offset}: {self.why}: {self.size_bytes} bytes cannot be read"


def header(base: int) -> bytes:
    """`base`: number of the last record before the file's first."""
    fields = _HEADER.pack(MAGIC, VERSION, base, 0)[:-4]
    return fields + zlib.crc32(fields).to_bytes(4, "little")


def frame(first: int, payload: bytes) -> bytes:
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"a frame holds at most {MAX_PAYLOAD_BYTES} bytes, not {len(payload)}")
    return b"".join((_FRAME.pack(MARK, len(payload), first, _checksum(first, payload)), payload))


def _checksum(first: int, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(struct.pack("<QI", first, len(payload))))


def read(path: Path) -> Iterator[Frame | Damage]:
    """All frames of a file, and the places that hold none, as they come.

    Raises StoreError for a file of a newer version, OSError for one that cannot be opened.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        begin, why = _read(file.fileno(), 0, HEADER_BYTES), ""
        offset = 0
        if size >= HEADER_BYTES and begin[-4:] == zlib.crc32(begin[:-4]).to_bytes(4, "little"):
            magic, version, _, _ = _HEADER.unpack(begin)
            if magic == MAGIC and version > VERSION:
                raise StoreError(str(path), f"a ledger of version {VERSION} or older", version)
            offset, why = (
                HEADER_BYTES,
                "" if magic == MAGIC else f"expected a ledger's header, found {magic!r}",
            )
        else:
            why = f"expected a ledger's header of {HEADER_BYTES} bytes with its checksum, found none"
        while why or offset < size:
            frame_or_why = why or _frame_at(file.fileno(), offset, size)
            if isinstance(frame_or_why, Frame):
                yield frame_or_why
                offset = frame_or_why.end
                continue
            behind = _next_frame(file.fileno(), offset, size)
            yield Damage(path, offset, behind - offset, frame_or_why, behind >= size)
            offset, why = behind, ""


def _frame_at(fd: int, offset: int, size: int) -> Frame | str:
    """The frame, or what was expected and found instead."""
    head = _read(fd, offset, _FRAME.size)
    if len(head) < _FRAME.size:
        return f"expected a frame's head of {_FRAME.size} bytes, found {len(head)}"
    mark, length, first, checksum = _FRAME.unpack(head)
    if mark != MARK:
        return f"expected a frame's mark {MARK!r}, found {mark!r}"
    begin = offset + _FRAME.size
    if length > min(MAX_PAYLOAD_BYTES, size - begin):
        return f"expected a frame of {length} bytes, found {size - begin} to the end of the file"
    payload = _read(fd, begin, length)
    if len(payload) != length or _checksum(first, payload) != checksum:
        return f"expected a frame of {length} bytes with checksum {checksum:08x}, found {_checksum(first, payload):08x}"
    return Frame(offset, first, payload, begin + length)


def _next_frame(fd: int, offset: int, size: int) -> int:
    """Offset of the first whole frame behind a place; the file's size when there is none."""
    step, at = 1 << 20, offset + 1
    while at < size:
        chunk = _read(fd, at, step + len(MARK))
        if not chunk:
            # A part that cannot be read at all.
            at += step
            continue
        mark = chunk.find(MARK)
        while mark >= 0:
            if isinstance(_frame_at(fd, at + mark, size), Frame):
                return at + mark
            mark = chunk.find(MARK, mark + 1)
        at += step
    return size


def _read(fd: int, offset: int, length: int) -> bytes:
    """Up to so many bytes; fewer at the end, and where the disk cannot read them."""
    parts: list[bytes] = []
    try:
        while length > 0 and (part := os.pread(fd, min(length, 1 << 24), offset)):
            parts.append(part)
            offset, length = offset + len(part), length - len(part)
    except OSError:
        pass
    return b"".join(parts)
