"""Reads the recorder's spools and node files (`docs/formats.md`, "Spool"), one in a file or many concatenated.

A damaged spool gives what is whole and counts the rest as lost; only a file that begins with neither is an error.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from tarazu import trusted
from tarazu.errors import TraceError

MAGIC = b"TZSPOOL1"
NODE_MAGIC = b"TZNODE01"
VERSION = 1
HEADER_BYTES = 256
NODE_HEADER_BYTES = 4096
NODE_HEADS_AT = 256

CREATE, CLOSE, END, OPEN = 1, 2, 3, 4

FLAG_EXISTED, FLAG_AGAIN, FLAG_SHARED = 1, 2, 4
FLAG_COUNTED, FLAG_REOPENED = 1, 2

NOT_COUNTED = 0xFFFFFFFF
"""n of a name that came when the process had no room for counting more."""

_HEADER = struct.Struct("<8sIIQQQIIiiIIQII64s64s40sQ")
_NODE = struct.Struct("<8sIIQQQQQIIIi64s64s8xQ")
_ENTRY = struct.Struct("<QIi")
_RECORD = struct.Struct("<HHIQ")
_CREATE = struct.Struct("<IIBBHIQ5HHI")
_CLOSE = struct.Struct("<QQQQIIQHHI")

_PIECE = 1 << 20
"""Of a spool, searched at once."""
_HEADS = (
    MAGIC + struct.pack("<II", VERSION, HEADER_BYTES),
    NODE_MAGIC + struct.pack("<II", VERSION, NODE_HEADER_BYTES),
)
"""How they begin: no name in a record can look like that."""

Buffer = bytes | bytearray | memoryview | mmap.mmap


class SpoolHeader(msgspec.Struct, frozen=True):
    """Who recorded: one process, or with pid 0 all processes of a rank on a node, of files that they only opened."""

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
    passed_over: int
    """Of a node: opens that could have made a file while tarazu was stopped."""
    placement_mode: int
    """0 observe, 1 advise, 2 place."""
    host: str
    program: str
    job_id: str


class CreateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one process asked to be created under a name."""

    time_ns: int
    existed: bool
    again: bool
    """The name was created before by this process."""
    shared: bool
    """Its plan knew that several processes open the file."""
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


class OpenRecord(msgspec.Struct, frozen=True):
    """A file that was there was opened to be written."""

    time_ns: int
    fs_name: str
    key: str


Record = CreateRecord | CloseRecord | OpenRecord


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
    opens: tuple[OpenRecord, ...] = ()
    """Of a node: when files that were there were last opened to be written."""


def read_spools(path: str | os.PathLike[str], *, own: bool = False) -> tuple[Spool, ...]:
    """Every spool in one file; `own`: as `trusted.open_file`. Raises TraceError if it cannot be read or is no spool."""
    where = os.fspath(path)
    try:
        with open(trusted.open_file(path, own=own), "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise TraceError(where, "a spool", "an empty file")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return parse_spools(data, where)
    except (OSError, ValueError) as error:
        raise TraceError(where, "a readable spool", str(error)) from None


def parse_spools(data: bytes | mmap.mmap, where: str = "spool") -> tuple[Spool, ...]:
    """Every spool in `data`. Raises TraceError when it does not begin with one of this version."""
    if bytes(data[:8]) not in (MAGIC, NODE_MAGIC):
        raise TraceError(where, f"a spool that begins with {MAGIC.decode()}", bytes(data[:8]))
    if len(data) < HEADER_BYTES:
        raise TraceError(where, f"a spool header of {HEADER_BYTES} bytes", f"{len(data)} bytes")
    version = struct.unpack_from("<I", data, 8)[0]
    if version != VERSION:
        raise TraceError(where, f"spool version {VERSION}", version)
    return tuple(_walk(data))


def _walk(data: bytes | mmap.mmap) -> Iterator[Spool]:
    """Spool after spool: the next begins where the last one's used part ends, or later."""
    offset = 0
    while 0 <= offset <= len(data) - HEADER_BYTES:
        if bytes(data[offset : offset + 8]) == NODE_MAGIC:
            spools, end = _node(data, offset)
            due = max(end, offset + _NODE.unpack_from(data, offset)[4])
        else:
            spool, end = _spool(data, offset)
            spools, due = [spool], max(end, offset + spool.header.capacity_bytes)
        following = _next(data, end)
        strange = (len(data) if following < 0 else following) - due
        if strange > 0 and spools:
            spools[-1] = msgspec.structs.replace(spools[-1], lost_bytes=spools[-1].lost_bytes + strange)
        yield from spools
        offset = following


def _next(data: bytes | mmap.mmap, start: int, end: int | None = None) -> int:
    """Where the next header begins, -1 for nowhere."""
    stop = len(data) if end is None else min(end, len(data))
    # Not mmap.find: up to Python 3.11.3 it reads one byte beyond the mapping.
    for here in range(start, stop, _PIECE):
        piece = bytes(data[here : min(here + _PIECE + len(_HEADS[0]) - 1, stop)])
        if positions := [at for head in _HEADS if (at := piece.find(head)) >= 0]:
            return here + min(positions)
    return -1


def _node(data: bytes | mmap.mmap, start: int) -> tuple[list[Spool], int]:
    """The files that processes of a node only opened, a Spool for each of their ranks; and where the node file ends."""
    v = _NODE.unpack_from(data, start)
    used, lost, full, mode, uid, ranks = min(v[3], v[4]), v[6], v[8] == 0, v[9], v[10], v[11]
    host, job = (_text(part.split(b"\0", 1)[0]) for part in v[12:14])
    passed_over = v[14]
    end = min(start + used, len(data)) if v[1] == VERSION and used >= NODE_HEADER_BYTES else start + 8
    by_rank: dict[int, list[Record]] = {}
    missing = max(start + used - len(data), 0)
    for at in _entries(data, start, end):
        rank = _ENTRY.unpack_from(data, at)[2]
        try:
            record, _ = _record(data, at + _ENTRY.size, end)
        except (struct.error, ValueError):
            missing += 1
            continue
        if record is not None:
            by_rank.setdefault(rank, []).append(record)
    spools = []
    for rank, records in sorted(
        by_rank.items() if by_rank else [(-1, [])] if lost or missing or passed_over else []
    ):
        records.sort(key=lambda r: r.time_ns)
        header = SpoolHeader(
            used_bytes=used, capacity_bytes=used, start_ns=records[0].time_ns if records else 0, pid=0, parent_pid=0,
            rank=rank, ranks=ranks, uid=uid, full=full, dropped_records=lost, passed_over=passed_over,
            placement_mode=mode, host=host, program="", job_id=job,
        )  # fmt: skip
        creates = tuple(r for r in records if isinstance(r, CreateRecord))
        closes = tuple(r for r in records if isinstance(r, CloseRecord))
        opens = tuple(r for r in records if isinstance(r, OpenRecord))
        last_ns = records[-1].time_ns if records else 0
        spools.append(Spool(header, creates, closes, False, last_ns, missing, opens))
        lost = missing = passed_over = 0
    return spools, end


def _entries(data: Buffer, start: int, end: int) -> Iterator[int]:
    """Places of the entries that can be reached."""
    seen: set[int] = set()
    for head in range(NODE_HEADS_AT, min(NODE_HEADER_BYTES, end - start - 3), 4):
        at = 8 * struct.unpack_from("<I", data, start + head)[0]
        while at >= NODE_HEADER_BYTES and start + at + _ENTRY.size <= end and at not in seen:
            seen.add(at)
            yield start + at
            at = 8 * _ENTRY.unpack_from(data, start + at)[1]


def read_header(data: Buffer, offset: int) -> tuple[SpoolHeader, int]:
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
        passed_over=0,
        placement_mode=v[13],
        host=_text(v[15].split(b"\0", 1)[0]),
        program=_text(v[16].split(b"\0", 1)[0]),
        job_id=_text(v[17].split(b"\0", 1)[0]),
    )
    return header, v[1]


def _spool(data: bytes | mmap.mmap, start: int) -> tuple[Spool, int]:
    """The spool at `start`, and where it ends."""
    header, version = read_header(data, start)
    if version != VERSION or not HEADER_BYTES <= header.used_bytes <= header.capacity_bytes:
        lost = max(min(header.capacity_bytes, len(data) - start) - HEADER_BYTES, 1)
        return Spool(header, (), (), False, header.start_ns, lost), start + HEADER_BYTES
    creates: list[CreateRecord] = []
    closes: list[CloseRecord] = []
    ended = False
    last_ns = header.start_ns
    used_end = start + header.used_bytes
    cut = _next(data, start + HEADER_BYTES, used_end)
    end = min(used_end, len(data)) if cut < 0 else cut
    lost = used_end - end
    offset = start + HEADER_BYTES
    while offset + _RECORD.size <= end:
        _, _, length, time_ns = _RECORD.unpack_from(data, offset)
        if length < _RECORD.size or length % 8 or offset + length > end:
            break
        try:
            record, ends = _record(data, offset, end)
            if isinstance(record, CreateRecord):
                creates.append(record)
            elif isinstance(record, CloseRecord):
                closes.append(record)
            ended = ended or ends
            last_ns = max(last_ns, time_ns)
        except (struct.error, ValueError):
            lost += length
        offset += length
    lost += end - offset
    return Spool(header, _counted(creates), tuple(closes), ended, last_ns, lost), offset


def _counted(creates: Sequence[CreateRecord]) -> tuple[CreateRecord, ...]:
    """The creates of one process, with the numbers that it would have given to names that it could not count."""
    if all(NOT_COUNTED not in (c.nth_precise, c.nth_loose) for c in creates):
        return tuple(creates)
    following: Counter[tuple[str, ...]] = Counter()
    numbers: dict[tuple[str, str], tuple[int, int]] = {}
    numbered = []
    for create in creates:
        templates = (create.fs_name, "T", create.precise), (create.fs_name, "L", create.loose)
        nth = create.nth_precise, create.nth_loose
        if NOT_COUNTED in nth:
            new = following[templates[0]], following[templates[1]]
            nth = numbers.get((create.fs_name, create.key), new)
        numbers[create.fs_name, create.key] = nth
        for template, n in zip(templates, nth, strict=True):
            following[template] = max(following[template], n + 1)
        numbered.append(msgspec.structs.replace(create, nth_precise=nth[0], nth_loose=nth[1]))
    return tuple(numbered)


def _record(data: Buffer, offset: int, end: int) -> tuple[Record | None, bool]:
    """The record at `offset`, None for another kind; and whether it says that the process ended.

    Raises ValueError or struct.error for one that is not well formed.
    """
    kind, flags, length, time_ns = _RECORD.unpack_from(data, offset)
    if length < _RECORD.size or offset + length > end:
        raise ValueError("a record longer than its spool")
    body = bytes(data[offset + _RECORD.size : offset + length])
    if kind == CREATE:
        return _create(body, flags, time_ns), False
    if kind == CLOSE:
        return _close(body, flags, time_ns), False
    if kind == OPEN:
        opened = _close(body, flags, time_ns)
        return OpenRecord(time_ns, opened.fs_name, opened.key), False
    return None, kind == END


def _create(body: bytes, flags: int, time_ns: int) -> CreateRecord:
    v = _CREATE.unpack_from(body)
    fs_name, key, precise, loose, layout = _strings(body, _CREATE.size, v[7:12])
    return CreateRecord(
        time_ns=time_ns,
        existed=bool(flags & FLAG_EXISTED),
        again=bool(flags & FLAG_AGAIN),
        shared=bool(flags & FLAG_SHARED),
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
