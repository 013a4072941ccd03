"""Spools written byte by byte after docs/formats.md, independently of the reader."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

import pytest

from tarazu.trace.records import RunRecord
from tarazu.trace.runfile import read_run

START_NS = 1_700_000_000_000_000_000


def decoded(data: bytes) -> RunRecord:
    """A run file with this content, as clientd gets it: from a descriptor."""
    descriptor = os.memfd_create("run")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return read_run(descriptor)


def _padded(body: bytes) -> bytes:
    return body + bytes(-len(body) % 8)


def create_record(
    key: str,
    precise: str,
    loose: str,
    *,
    at_s: float = 1.0,
    fs: str = "lustre",
    flags: int = 0,
    nth: tuple[int, int] = (0, 0),
    outcome: int = 1,
    found: int = 1,
    errno: int = 0,
    row_id: int = 0,
    generation: int = 1,
    layout: bytes = b"",
) -> bytes:
    parts = [t.encode("utf-8", "surrogateescape") for t in (fs, key, precise, loose)] + [layout]
    lengths = [len(p) for p in parts]
    body = struct.pack("<IIBBHIQ", *nth, outcome, found, errno, row_id, generation)
    body += struct.pack("<5HHI", *lengths, 0, 0) + b"".join(parts)
    body = _padded(body)
    return struct.pack("<HHIQ", 1, flags, 16 + len(body), START_NS + int(at_s * 1e9)) + body


def close_record(
    key: str,
    size: int,
    *,
    at_s: float = 2.0,
    fs: str = "lustre",
    flags: int = 1,
    written: int | None = None,
    low: int = 0,
    end: int | None = None,
    segments: int = 1,
) -> bytes:
    raw_fs, raw_key = fs.encode(), key.encode("utf-8", "surrogateescape")
    written = size if written is None else written
    end = size if end is None else end
    body = struct.pack("<QQQQIIQ", size, written, low, end, 1, segments, START_NS)
    body = _padded(body + struct.pack("<HHI", len(raw_fs), len(raw_key), 0) + raw_fs + raw_key)
    return struct.pack("<HHIQ", 2, flags, 16 + len(body), START_NS + int(at_s * 1e9)) + body


def end_record(at_s: float = 9.0) -> bytes:
    return struct.pack("<HHIQ", 3, 0, 16, START_NS + int(at_s * 1e9))


def spool(
    records: list[bytes],
    *,
    rank: int = 0,
    ranks: int = 1,
    capacity: int | None = None,
    mode: int = 0,
    dropped: int = 0,
    pid: int = 100,
    start_ns: int = START_NS,
) -> bytes:
    body = b"".join(records)
    used = 256 + len(body)
    capacity = max(4096, used + 512) if capacity is None else capacity
    head = struct.pack("<8sII", b"TZSPOOL1", 1, 256)
    head += struct.pack("<QQQIIiiII", used, capacity, start_ns, pid + rank, 1, rank, ranks, 1000, mode)
    head += struct.pack("<QII64s64s40sQ", dropped, 2, 0, b"node1", b"ior", b"4711.batch", 0)
    return (head + body).ljust(capacity, b"\0")


@pytest.fixture
def spools() -> dict[str, Callable[..., Any]]:
    return {
        "spool": spool,
        "create": create_record,
        "close": close_record,
        "end": end_record,
    }
