"""Follows the spools of a running step: reads what was added or changed since the last look (`docs/formats.md`).

A process's spool grows at its end, and its counter of changes grows by one for each record added or changed. So
when it has grown by no more than what was added, nothing else has to be read. Otherwise the records whose blocks
of bytes are not what they were are read again.
"""

from __future__ import annotations

import os
import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from tarazu.errors import TraceError
from tarazu.trace import spool
from tarazu.trace.spool import Spool, SpoolHeader

Name = bytes
"""File system and key, as they stand one behind the other in a record: the key begins with the first slash."""

BLOCK_BYTES = 4096
"""Counted from the end of the header."""
_RECORD = struct.Struct("<HHIQ")
_CREATE = struct.Struct("<8xB3xI8xHH")
"""Of a create record's fixed part: outcome, row id, lengths of file system and key."""
_CREATE_TEXTS = 16 + 40
_CLOSE = struct.Struct("<Q40xHH")
"""Of a close record's: size, the same lengths."""
_CLOSE_TEXTS = 16 + 56


class ProcessFile(msgspec.Struct, gc=False):
    """What one process did with one file."""

    row_id: int = 0
    outcome: int = -1
    """Of its create; −1: it only opened the file."""
    existed: bool = False
    time_ns: int = 0
    """When it created the file."""
    opened_ns: int = 0
    closed_ns: int = 0
    size_bytes: int = 0

    @property
    def open(self) -> bool:
        return self.opened_ns > self.closed_ns


class Process:
    """What one process, or all of a rank that only opened files on a node, has recorded so far."""

    def __init__(self, header: SpoolHeader) -> None:
        self.header = header
        self.parts: dict[Name, ProcessFile] = {}
        self.ended = False
        self.touched: set[Name] = set()
        """Files of which something was read since the last look."""

    @property
    def id(self) -> tuple[object, ...]:
        h = self.header
        return h.host, h.pid, h.start_ns if h.pid else 0, h.rank

    def take(self, data: bytes, at: int, length: int) -> None:
        """One record. What is not well formed is left to the end of the step."""
        kind, flags, _, time_ns = _RECORD.unpack_from(data, at)
        if kind == spool.CREATE and length >= _CREATE_TEXTS:
            outcome, row_id, fs_length, key_length = _CREATE.unpack_from(data, at + 16)
            name, part = self._part(data, at + _CREATE_TEXTS, at + length, fs_length, key_length)
            made = outcome, row_id, flags & spool.FLAG_EXISTED != 0, time_ns
            if (
                part
                and time_ns >= part.time_ns
                and made != (part.outcome, part.row_id, part.existed, part.time_ns)
            ):
                part.outcome, part.row_id, part.existed, part.time_ns = made
                part.opened_ns = max(time_ns, part.opened_ns)
                self.touched.add(name)
        elif kind == spool.CLOSE and length >= _CLOSE_TEXTS:
            size, fs_length, key_length = _CLOSE.unpack_from(data, at + 16)
            name, part = self._part(data, at + _CLOSE_TEXTS, at + length, fs_length, key_length)
            if part and (time_ns, size) != (part.closed_ns, part.size_bytes):
                part.closed_ns, part.size_bytes = time_ns, size
                self.touched.add(name)
        elif kind == spool.END:
            self.ended = True
            self.touched.update(self.parts)

    def _part(
        self, data: bytes, at: int, end: int, fs_length: int, key_length: int
    ) -> tuple[Name, ProcessFile | None]:
        middle = at + fs_length
        name = data[at : middle + key_length]
        if middle + key_length > end or name.find(b"/") != fs_length:
            return name, None
        part = self.parts.get(name)
        if part is None:
            part = self.parts[name] = ProcessFile()
        return name, part


class LiveSpool:
    """The spool of one process that has not ended."""

    def __init__(self) -> None:
        self.process: Process | None = None
        self._read_to = spool.HEADER_BYTES
        self._changes = 0
        self._starts = array("I")
        self._blocks: list[int] = []
        """Checksum of each block, as it was read."""

    def update(self, descriptor: int, used: int, changes: int) -> list[Process]:
        """Read on up to `used`; the process. Raises TraceError for what is no spool."""
        if self.process is None:
            self.process = Process(header_of(os.pread(descriptor, spool.HEADER_BYTES, 0)))
        added = self._take_from(os.pread(descriptor, used - self._read_to, self._read_to), self._read_to)
        if changes - self._changes != added:
            self._take_changed(os.pread(descriptor, self._read_to - spool.HEADER_BYTES, spool.HEADER_BYTES))
        self._changes = changes
        return [self.process]

    def _take_from(self, data: bytes, offset: int) -> int:
        """Whole records; how many."""
        assert self.process is not None
        count = 0
        for at, length in records(data):
            self._starts.append(offset + at)
            self.process.take(data, at, length)
            self._read_to = offset + at + length
            count += 1
        checksums(data[: self._read_to - offset], offset - spool.HEADER_BYTES, self._blocks)
        return count

    def _take_changed(self, data: bytes) -> None:
        """`data`: all that was read, behind the header."""
        assert self.process is not None
        before, self._blocks = self._blocks, checksums(data, 0, [])
        changed = [i for i, (now, then) in enumerate(zip(self._blocks, before, strict=True)) if now != then]
        for n in sorted({n for block in changed for n in self._in_block(block)}):
            at = self._starts[n] - spool.HEADER_BYTES
            self.process.take(data, at, _RECORD.unpack_from(data, at)[2])

    def _in_block(self, block: int) -> range:
        """Numbers of the records that a block of bytes holds a part of."""
        begin = spool.HEADER_BYTES + block * BLOCK_BYTES
        first = max(bisect_right(self._starts, begin) - 1, 0)
        return range(first, bisect_left(self._starts, begin + BLOCK_BYTES))


class EndedSpools:
    """The file of the processes of a node that have ended, which only grows."""

    def __init__(self) -> None:
        self.read_to = 0

    def update(self, descriptor: int, size: int, most_bytes: int) -> list[Process]:
        """Those that came since the last look, `most_bytes` of them at most: the rest is for the next ones."""
        data = os.pread(descriptor, min(size - self.read_to, most_bytes), self.read_to)
        processes = []
        done = 0
        while (at := data.find(spool.MAGIC, done)) >= 0 and at + spool.HEADER_BYTES <= len(data):
            header = header_of(data[at : at + spool.HEADER_BYTES])
            first, end = at + spool.HEADER_BYTES, at + header.used_bytes
            cut = data.find(spool.MAGIC, first, end)  # it was killed while it wrote, and others came behind
            if cut < 0 and end > len(data):
                break  # it is being written, or lies behind what is read now
            done = end if cut < 0 else cut
            process = Process(header)
            for start, length in records(data[first:done]):
                process.take(data, first + start, length)
            processes.append(process)
        self.read_to += done
        return processes


def from_node(spools: Iterable[Spool]) -> list[Process]:
    """What the processes of a node only opened, as read whole."""
    processes = []
    for one in spools:
        process = Process(one.header)
        for create in one.creates:
            part = process.parts.setdefault(name_of(create.fs_name, create.key), ProcessFile())
            part.row_id, part.outcome, part.existed = (
                create.row_id or part.row_id,
                create.outcome,
                create.existed,
            )
            part.time_ns = create.time_ns
            part.opened_ns = max(create.time_ns, part.opened_ns)
        for again in one.opens:
            part = process.parts.setdefault(name_of(again.fs_name, again.key), ProcessFile())
            part.opened_ns = max(again.time_ns, part.opened_ns)
        for close in one.closes:
            part = process.parts.setdefault(name_of(close.fs_name, close.key), ProcessFile())
            part.closed_ns, part.size_bytes = close.time_ns, close.size_bytes
        process.touched.update(process.parts)
        processes.append(process)
    return processes


def name_of(fs_name: str, key: str) -> Name:
    return (fs_name + key).encode("utf-8", "surrogateescape")


def split(name: Name) -> tuple[str, str]:
    """File system and key."""
    fs_name, _, key = name.partition(b"/")
    return fs_name.decode("utf-8", "surrogateescape"), "/" + key.decode("utf-8", "surrogateescape")


def header_of(data: bytes) -> SpoolHeader:
    """Raises TraceError for what does not begin with a spool of this version, or not yet."""
    if len(data) < spool.HEADER_BYTES or data[:8] != spool.MAGIC:
        raise TraceError("spool", f"a spool that begins with {spool.MAGIC.decode()}", data[:8])
    header, version = spool.read_header(data, 0)
    if version != spool.VERSION or header.used_bytes < spool.HEADER_BYTES:
        raise TraceError("spool", f"spool version {spool.VERSION}", version)
    return header


def records(data: bytes) -> Iterator[tuple[int, int]]:
    """Place and length of each whole record, up to the first broken one."""
    at = 0
    while at + _RECORD.size <= len(data):
        length = _RECORD.unpack_from(data, at)[2]
        if length < _RECORD.size or length % 8 or at + length > len(data):
            return
        yield at, length
        at += length


def checksums(data: bytes, offset: int, blocks: list[int]) -> list[int]:
    """`blocks` with those of the data added that stand `offset` bytes behind the header, where `blocks` end."""
    at = 0
    while at < len(data):
        block, inside = divmod(offset + at, BLOCK_BYTES)
        part = data[at : at + BLOCK_BYTES - inside]
        if block < len(blocks):
            blocks[block] = zlib.crc32(part, blocks[block])
        else:
            blocks.append(zlib.crc32(part))
        at += len(part)
    return blocks
