from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu.errors import TraceError
from tarazu.trace.spool import parse_spools, read_spools

Make = dict[str, Callable[..., Any]]
FIXED = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)


def whole(make: Make, **header: Any) -> bytes:
    records = [
        make["create"]("/a/f.3", "/a/f.{rank}", "/a/f.#", nth=(1, 2), outcome=4, found=2, errno=28, row_id=7),
        make["close"]("/a/f.3", 4096, written=5000, low=16, segments=2),
        make["end"](),
    ]
    data: bytes = make["spool"](records, rank=3, ranks=8, **header)
    return data


def test_every_field_is_read(spools: Make) -> None:
    (one,) = parse_spools(whole(spools))
    head, create, close = one.header, one.creates[0], one.closes[0]
    assert (head.rank, head.ranks, head.pid, head.uid, head.full) == (3, 8, 103, 1000, True)
    assert (head.host, head.program, head.job_id, head.placement_mode) == ("node1", "ior", "4711.batch", 2)
    assert (create.fs_name, create.key, create.precise, create.loose) == (
        "lustre",
        "/a/f.3",
        "/a/f.{rank}",
        "/a/f.#",
    )
    assert (create.nth_precise, create.nth_loose, create.outcome, create.found) == (1, 2, 4, 2)
    assert (create.errno, create.row_id, create.generation) == (28, 7, 1)
    assert (close.size_bytes, close.written_bytes, close.lowest_bytes, close.segments) == (4096, 5000, 16, 2)
    assert close.counted and not close.reopened
    assert one.ended and one.lost_bytes == 0


def test_concatenated_spools_are_told_apart(spools: Make) -> None:
    data = b"".join(spools["spool"]([spools["end"]()], rank=r, capacity=4096) for r in range(3))
    assert [s.header.rank for s in parse_spools(data)] == [0, 1, 2]
    assert sum(s.lost_bytes for s in parse_spools(data)) == 0


def test_rubbish_behind_a_spool_is_counted_as_lost(spools: Make) -> None:
    data = spools["spool"]([], capacity=4096) + b"x" * 100
    (one,) = parse_spools(data)
    assert one.lost_bytes == 100


def test_truncated_spool_gives_what_is_whole(spools: Make) -> None:
    data = whole(spools)
    used = 256 + len(b"".join([spools["create"]("/a/f.3", "/a/f.{rank}", "/a/f.#", nth=(1, 2))]))
    (one,) = parse_spools(data[: used + 20])
    assert len(one.creates) == 1 and not one.closes and not one.ended
    assert one.lost_bytes > 0


def test_record_of_impossible_length_ends_the_spool_and_is_counted(spools: Make) -> None:
    good, bad = spools["close"]("/a", 1), bytearray(spools["close"]("/b", 2))
    bad[4:8] = (12).to_bytes(4, "little")
    (one,) = parse_spools(spools["spool"]([good, bytes(bad), spools["end"]()]))
    assert [c.key for c in one.closes] == ["/a"]
    assert one.lost_bytes == len(bad) + 16


def test_record_with_strings_that_do_not_fit_is_skipped(spools: Make) -> None:
    bad = bytearray(spools["close"]("/b", 2))
    bad[66:68] = (60_000).to_bytes(2, "little")
    (one,) = parse_spools(spools["spool"]([bytes(bad), spools["close"]("/c", 3), spools["end"]()]))
    assert [c.key for c in one.closes] == ["/c"]
    assert one.ended and one.lost_bytes == len(bad)


def test_unknown_record_types_are_ignored(spools: Make) -> None:
    strange = bytearray(spools["end"]())
    strange[0] = 77
    (one,) = parse_spools(spools["spool"]([bytes(strange), spools["end"]()]))
    assert one.ended and one.lost_bytes == 0


def test_names_that_are_no_utf8_survive(spools: Make) -> None:
    name = b"/caf\xe9".decode("utf-8", "surrogateescape")
    (one,) = parse_spools(spools["spool"]([spools["close"](name, 1)]))
    assert one.closes[0].key == name


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "empty"),
        (b"\x7fELF" + bytes(300), "TZSPOOL1"),
        (b"TZSPOOL1\1\0\0\0", "256"),
        (b"TZSPOOL1\2\0\0\0" + bytes(300), "version 1"),
    ],
)
def test_foreign_files_are_refused_in_one_line(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "x.tzs"
    path.write_bytes(data)
    with pytest.raises(TraceError) as caught:
        read_spools(path)
    assert expected in str(caught.value) and str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_is_a_trace_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="readable spool"):
        read_spools(tmp_path / "none.tzs")


@FIXED
@given(st.integers(0, 4095), st.integers(0, 255))
def test_any_flipped_byte_behind_the_magic_is_survived(spools: Make, at: int, value: int) -> None:
    data = bytearray(whole(spools, capacity=4096))
    data[max(at, 12)] = value
    for one in parse_spools(bytes(data)):
        assert one.lost_bytes >= 0
        assert all(c.key.startswith("/") for c in one.creates)


@FIXED
@given(st.integers(256, 4096))
def test_any_truncation_is_survived(spools: Make, length: int) -> None:
    data = whole(spools, capacity=4096)[:length]
    (one,) = parse_spools(data)
    assert (one.lost_bytes > 0) == (not one.ended)


BELOW_A_HOLE = """
import ctypes, sys
from tarazu.trace.spool import read_spools
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
pages = [libc.mmap(None, 4096, 0, 0x22, -1, 0) for _ in range(4000)]  # the gaps of the process are full now
for page in pages[-200:-100]:
    libc.munmap(page, 4096)
    read_spools(sys.argv[1])
    libc.mmap(page, 4096, 0, 0x32, -1, 0)
"""


def test_a_spool_that_ends_with_a_page_does_not_kill_the_reader(spools: Make, tmp_path: Path) -> None:
    """mmap.find of Python before 3.11.4 reads beyond the mapping: nothing readable lies behind it here."""
    path = tmp_path / "page.tzs"
    path.write_bytes(spools["spool"]([spools["end"]()], capacity=4096))
    done = subprocess.run(
        [sys.executable, "-c", BELOW_A_HOLE, path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
