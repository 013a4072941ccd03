"""Reads the recorder's spools (`docs/formats.md`, "Spool"): one file per process, or several concatenated.

A damaged spool gives what is whole and counts the rest as lost; only a file that is no spool is an error.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tarazu.errors import TraceError

MAGIC = b"TZSPOOL1"
VERSION = 1
HEADER_BYTES = 256

CREATE, CLOSE, END = 1, 2, 3

FLAG_EXISTED, FLAG_AGAIN = 1, 2
FLAG_COUNTED, FLAG_REOPENED = 1, 2

_HEADER = struct.Struct("<8sIIQQQIIiiIIQII64s64s40sQ")
_RECORD = struct.Struct("<HHIQ")
_CREATE = struct.Struct("<IIBBHIQ5HHI")
_CLOSE = struct.Struct("<QQQQIIQHHI")

Buffer = bytes | bytearray | memoryview | mmap.mmap


class SpoolHeader(msgspec.Struct, frozen=True):
    """Who recorded: one process."""

    used_bytes: int
    capacity_bytes: int
    start_ns: int
    pid: int
    parent_pid: int
    rank: int
    """−1 = none."""
    ranks: int
    """Ranks in the job step, 0 = unknown."""
    uid: int
    full: bool
    """Recorder mode full: writes were counted."""
    dropped_records: int
    placement_mode: int
    """0 observe, 1 advise, 2 place."""
    host: str
    program: str
    job_id: str


class CreateRecord(msgspec.Struct, frozen=True):
    """One create of one process."""

    time_ns: int
    existed: bool
    again: bool
    """The name was created before by this process."""
    nth_precise: int
    nth_loose: int
    outcome: int
    found: int
    errno: int
    row_id: int
    generation: int
    fs_name: str
    key: str
    precise: str
    loose: str
    layout: bytes


class CloseRecord(msgspec.Struct, frozen=True):
    """One last close of a descriptor that was open for writing."""

    time_ns: int
    counted: bool
    reopened: bool
    """Opened for writing without being created by this process."""
    size_bytes: int
    written_bytes: int
    lowest_bytes: int
    """Lowest offset written."""
    end_bytes: int
    """End of the highest write."""
    writes: int
    segments: int
    opened_ns: int
    fs_name: str
    key: str


class Spool(msgspec.Struct, frozen=True):
    """Everything one process recorded, in order of time."""

    header: SpoolHeader
    creates: tuple[CreateRecord, ...]
    closes: tuple[CloseRecord, ...]
    ended: bool
    """The process ended normally."""
    last_ns: int
    """Time of the last record; the start when there is none."""
    lost_bytes: int = 0
    """Of the used part, what is missing or cannot be read."""


def read_spools(path: str | os.PathLike[str]) -> tuple[Spool, ...]:
    """Every spool in one file. Raises TraceError when the file cannot be read or is no spool."""
    where = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise TraceError(where, "a spool", "an empty file")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return parse_spools(data, where)
    except (OSError, ValueError) as error:
        raise TraceError(where, "a readable spool", str(error)) from None


def parse_spools(data: Buffer, where: str = "spool") -> tuple[Spool, ...]:
    """Every spool in `data`. Raises TraceError when it does not begin with one of this version."""
    if bytes(data[:8]) != MAGIC:
        raise TraceError(where, f"a spool that begins with {MAGIC.decode()}", bytes(data[:8]))
    if len(data) < HEADER_BYTES:
        raise TraceError(where, f"a spool header of {HEADER_BYTES} bytes", f"{len(data)} bytes")
    version = struct.unpack_from("<I", data, 8)[0]
    if version != VERSION:
        raise TraceError(where, f"spool version {VERSION}", version)
    return tuple(_walk(data))


def _walk(data: Buffer) -> Iterator[Spool]:
    offset = 0
    previous: Spool | None = None
    while offset + HEADER_BYTES <= len(data) and bytes(data[offset : offset + 8]) == MAGIC:
        if previous is not None:
            yield previous
        header, version = _header(data, offset)
        whole = version == VERSION and HEADER_BYTES <= header.used_bytes <= header.capacity_bytes
        if whole:
            previous = _spool(data, offset, header)
        else:
            rest = min(max(header.capacity_bytes, HEADER_BYTES), len(data) - offset)
            previous = Spool(header, (), (), False, header.start_ns, max(rest - HEADER_BYTES, 1))
        offset += max(header.capacity_bytes, HEADER_BYTES)
    if previous is not None:
        tail = max(len(data) - offset, 0)
        yield msgspec.structs.replace(previous, lost_bytes=previous.lost_bytes + tail)


def _header(data: Buffer, offset: int) -> tuple[SpoolHeader, int]:
    """The header at `offset`, and its version."""
    v = _HEADER.unpack_from(data, offset)
    header = SpoolHeader(
        used_bytes=v[3],
        capacity_bytes=v[4],
        start_ns=v[5],
        pid=v[6],
        parent_pid=v[7],
        rank=v[8],
        ranks=v[9],
        uid=v[10],
        full=v[11] == 0,
        dropped_records=v[12],
        placement_mode=v[13],
        host=_text(v[15].split(b"\0", 1)[0]),
        program=_text(v[16].split(b"\0", 1)[0]),
        job_id=_text(v[17].split(b"\0", 1)[0]),
    )
    return header, v[1]


def _spool(data: Buffer, start: int, header: SpoolHeader) -> Spool:
    """The records of the spool at `start`."""
    creates: list[CreateRecord] = []
    closes: list[CloseRecord] = []
    ended = False
    last_ns = header.start_ns
    used_end = start + header.used_bytes
    end = min(used_end, len(data))
    lost = used_end - end
    offset = start + HEADER_BYTES
    while offset + _RECORD.size <= end:
        kind, flags, length, time_ns = _RECORD.unpack_from(data, offset)
        if length < _RECORD.size or length % 8 or offset + length > end:
            break
        body = bytes(data[offset + _RECORD.size : offset + length])
        offset += length
        try:
            if kind == CREATE:
                creates.append(_create(body, flags, time_ns))
            elif kind == CLOSE:
                closes.append(_close(body, flags, time_ns))
            elif kind == END:
                ended = True
        except (struct.error, ValueError):
            lost += length
            continue
        last_ns = max(last_ns, time_ns)
    lost += end - offset
    return Spool(header, tuple(creates), tuple(closes), ended, last_ns, lost)


def _create(body: bytes, flags: int, time_ns: int) -> CreateRecord:
    v = _CREATE.unpack_from(body)
    fs_name, key, precise, loose, layout = _strings(body, _CREATE.size, v[7:12])
    return CreateRecord(
        time_ns=time_ns,
        existed=bool(flags & FLAG_EXISTED),
        again=bool(flags & FLAG_AGAIN),
        nth_precise=v[0],
        nth_loose=v[1],
        outcome=v[2],
        found=v[3],
        errno=v[4],
        row_id=v[5],
        generation=v[6],
        fs_name=_text(fs_name),
        key=_key(key),
        precise=_text(precise),
        loose=_text(loose),
        layout=layout,
    )


def _close(body: bytes, flags: int, time_ns: int) -> CloseRecord:
    v = _CLOSE.unpack_from(body)
    fs_name, key = _strings(body, _CLOSE.size, v[7:9])
    return CloseRecord(
        time_ns=time_ns,
        counted=bool(flags & FLAG_COUNTED),
        reopened=bool(flags & FLAG_REOPENED),
        size_bytes=v[0],
        written_bytes=v[1],
        lowest_bytes=v[2],
        end_bytes=v[3],
        writes=v[4],
        segments=v[5],
        opened_ns=v[6],
        fs_name=_text(fs_name),
        key=_key(key),
    )


def _strings(body: bytes, offset: int, lengths: tuple[int, ...]) -> list[bytes]:
    """Consecutive byte strings of these lengths. Raises ValueError when they do not fit."""
    if offset + sum(lengths) > len(body):
        raise ValueError("strings longer than their record")
    parts = []
    for length in lengths:
        parts.append(body[offset : offset + length])
        offset += length
    return parts


def _key(raw: bytes) -> str:
    """Raises ValueError for what cannot be a path below a mount."""
    if not raw.startswith(b"/") or b"\0" in raw:
        raise ValueError("not a key")
    return _text(raw)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
