from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.sim.workloads import darshan
from tarazu.sim.workloads.workload import OperationKind, Workload
from tarazu.trace.darshan.log import DarshanLog
from tarazu.trace.darshan.read import read, segments
from tests.trace.darshan import writer
from tests.trace.darshan.writer import INIT, table, write

DATA = Path(__file__).parents[2] / "data" / "traces"
INDEX = {row["file"]: row for row in csv.DictReader((DATA / "INDEX.csv").read_text().splitlines())}
MIB = 1 << 20
OTHER_BYTES = {
    "ior_hdf5_fpp_n4_t1m.darshan": 5984,  # HDF5's own, beside the data
    "ser_cp.darshan": -8388608,  # copy_file_range
    "ior_posix_fpp_n8_i6_m_partial.darshan": -16777216,  # 16 of 48 files are not in the log
}
"""Bytes in the log that the benchmark does not count, and those that are missing from it."""


def times(work: Workload, rank: int) -> list[tuple[OperationKind, float, int]]:
    mine = work.operations[work.operations["rank"] == rank]
    return [(OperationKind(o["kind"]), float(o["delay_s"]), int(o["bytes"])) for o in mine]


def test_the_papers_method(tmp_path: Path) -> None:
    """Open at 2 s, close at 10 s, 1 s in reads and 3 s in writes: 4 s idle, over 4 requests with the bytes."""
    one = {
        "F_OPEN_START_TIMESTAMP": 2.0,
        "F_CLOSE_END_TIMESTAMP": 10.0,
        "F_READ_TIME": 1.0,
        "F_WRITE_TIME": 3.0,
    }
    moved = {"BYTES_WRITTEN": 4003, "MAX_BYTE_WRITTEN": 4002, "BYTES_READ": 400, "MAX_BYTE_READ": 399}
    when = {"F_WRITE_START_TIMESTAMP": 3.0, "F_READ_START_TIMESTAMP": 8.0}
    posix = table("POSIX", 1, 0, OPENS=1, WRITES=9, READS=9, **one, **moved, **when)
    log = read(write(tmp_path / "x.darshan", {"POSIX": posix}, {1: "/lustre/a"}))
    work = darshan.workload(log, requests=4)
    turns = [(OperationKind.WRITE, 1.0), (OperationKind.READ, 0.0)] * 4
    expected = [(OperationKind.CREATE, 2.0), *turns, (OperationKind.CLOSE, 0.0)]
    assert [(kind, delay) for kind, delay, _ in times(work, 0)] == [
        (k, pytest.approx(d)) for k, d in expected
    ]
    assert [b for k, _, b in times(work, 0) if k is OperationKind.WRITE] == [1000, 1001, 1001, 1001]
    assert [b for k, _, b in times(work, 0) if k is OperationKind.READ] == [100] * 4
    writes = work.operations[work.operations["kind"] == OperationKind.WRITE]
    assert (
        writes["offset"].tolist() == [0, 1000, 2001, 3002] and (writes["span_bytes"] == writes["bytes"]).all()
    )
    assert work.files[0].size_bytes == 4003 and not work.files[0].exists


def test_files_of_a_rank_are_merged_by_time(tmp_path: Path) -> None:
    """The second file is used within the idle time of the first, which gets shorter by as much."""
    posix = table(
        "POSIX",
        [1, 2],
        0,
        OPENS=1,
        WRITES=2,
        BYTES_WRITTEN=[2000, 200],
        MAX_BYTE_WRITTEN=[1999, 199],
        F_OPEN_START_TIMESTAMP=[1.0, 1.5],
        F_CLOSE_END_TIMESTAMP=[11.0, 3.5],
        F_WRITE_TIME=[2.0, 1.0],
    )
    log = read(write(tmp_path / "x.darshan", {"POSIX": posix}, {1: "/lustre/a", 2: "/lustre/b"}))
    work = darshan.workload(log, requests=2)
    of = work.operations
    assert of["file"].tolist() == [0, 1, 1, 1, 1, 0, 0, 0]
    # a idles 1 to 5 and 6 to 10; b is open from 1.5 to 3.5 and idles half of it.
    assert of["delay_s"].tolist() == pytest.approx([1.0, 0.5, 0.5, 0.5, 0.0, 1.5, 4.0, 0.0])
    assert [f.key for f in work.files] == ["/lustre/a", "/lustre/b"]


def test_files_stand_in_the_order_of_first_opens(tmp_path: Path) -> None:
    opened = [5.0, 1.0, 3.0]
    posix = table(
        "POSIX", [1, 2, 3], [0, 1, 2], BYTES_WRITTEN=9, MAX_BYTE_WRITTEN=8, F_OPEN_START_TIMESTAMP=opened
    )
    log = read(
        write(tmp_path / "x.darshan", {"POSIX": posix}, {i: f"/lustre/{i}" for i in (1, 2, 3)}, ranks=3)
    )
    work = darshan.workload(log)
    assert [f.key for f in work.files] == ["/lustre/2", "/lustre/3", "/lustre/1"]
    assert [(o["rank"], o["file"]) for o in work.operations[::3]] == [(0, 2), (1, 0), (2, 1)]


def test_what_is_only_read_was_there_before(tmp_path: Path) -> None:
    """So was what is read before it is written, or beyond what is written."""
    posix = table(
        "POSIX",
        [1, 2, 3, 4],
        0,
        BYTES_READ=[100, 10, 900, 10],
        MAX_BYTE_READ=[4999, 9, 899, 9],
        BYTES_WRITTEN=[0, 10, 100, 10],
        MAX_BYTE_WRITTEN=[0, 9, 99, 9],
        F_READ_START_TIMESTAMP=[1, 1, 5, 5],
        F_WRITE_START_TIMESTAMP=[0, 2, 1, 1],
    )
    log = read(write(tmp_path / "x.darshan", {"POSIX": posix}, {i: f"/lustre/{i}" for i in range(1, 5)}))
    work = darshan.workload(log)
    found = {f.key[-1]: (f.exists, f.size_bytes) for f in work.files}
    assert found == {"1": (True, 5000), "2": (True, 10), "3": (True, 900), "4": (False, 10)}
    kinds = {
        (work.files[o["file"]].key[-1], int(o["kind"]))
        for o in work.operations
        if o["kind"] <= OperationKind.OPEN
    }
    assert kinds == {
        ("1", OperationKind.OPEN),
        ("2", OperationKind.OPEN),
        ("3", OperationKind.OPEN),
        ("4", OperationKind.CREATE),
    }


def test_a_shared_record_is_spread_over_all_ranks(tmp_path: Path) -> None:
    posix = table(
        "POSIX",
        [1, 2],
        -1,
        WRITES=[16, 0],
        READS=[0, 8],
        BYTES_WRITTEN=[4 * MIB, 0],
        MAX_BYTE_WRITTEN=[4 * MIB - 1, 0],
        BYTES_READ=[0, 4 * 1000],
        MAX_BYTE_READ=[0, 999],
        F_OPEN_START_TIMESTAMP=1.0,
        F_CLOSE_END_TIMESTAMP=9.0,
        F_WRITE_TIME=[16.0, 0],
    )
    log = read(write(tmp_path / "x.darshan", {"POSIX": posix}, {1: "/lustre/out", 2: "/lustre/in"}, ranks=4))
    work = darshan.workload(log, requests=1)
    assert any("2 shared files" in line and "4 ranks" in line for line in work.assumed)
    for rank in range(4):
        mine = work.operations[work.operations["rank"] == rank]
        (wrote,), (got,) = mine[mine["kind"] == OperationKind.WRITE], mine[mine["kind"] == OperationKind.READ]
        assert (wrote["offset"], wrote["bytes"], wrote["span_bytes"]) == (rank * MIB, MIB, MIB)
        # Four ranks read four times what the file holds: each reads all of it.
        assert (got["offset"], got["bytes"], got["span_bytes"]) == (0, 1000, 1000)
    assert (work.operations["kind"] == OperationKind.CREATE).sum() == 1


def test_too_many_shared_records_are_spread_over_fewer_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(darshan, "MOST_OPERATIONS", 300)
    ids = list(range(1, 11))
    posix = table("POSIX", ids, -1, WRITES=6400, BYTES_WRITTEN=64 * MIB, MAX_BYTE_WRITTEN=64 * MIB - 1)
    log = read(write(tmp_path / "x.darshan", {"POSIX": posix}, {i: f"/lustre/{i}" for i in ids}, ranks=64))
    work = darshan.workload(log)
    assert len(work.operations) <= 300 and work.moved_bytes(OperationKind.WRITE) == 640 * MIB
    assert any("10 of 64 ranks" in line for line in work.assumed)
    assert len(set(work.operations["rank"].tolist())) == 10


def test_pieces_of_ranks_in_a_shared_file_are_where_they_were(tmp_path: Path) -> None:
    size = {"BYTES_WRITTEN": MIB, "MAX_BYTE_WRITTEN": np.arange(1, 5) * MIB - 1, "WRITES": 1}
    path = write(
        tmp_path / "x.darshan",
        {"POSIX": table("POSIX", [1] * 4, range(4), **size)},
        {1: "/lustre/a"},
        ranks=4,
    )
    writes = darshan.workload(read(path)).operations
    writes = writes[writes["kind"] == OperationKind.WRITE]
    assert writes["offset"].tolist() == [r * MIB for r in range(4)]
    strided = darshan.workload(read(DATA / "ior_posix_ssf_n8_t64k_strided_nored.darshan")).operations
    strided = strided[strided["kind"] == OperationKind.WRITE]
    assert strided["bytes"].sum() == 64 * MIB and (strided["span_bytes"] > 7 * strided["bytes"]).all()


def test_layouts_and_osts_are_kept_where_the_log_has_them_whole(tmp_path: Path) -> None:
    posix = table("POSIX", [1, 2, 3], 0, BYTES_WRITTEN=200 * MIB, MAX_BYTE_WRITTEN=200 * MIB - 1)
    first = (MIB, 1, 0, INIT, 0, 128 * MIB, 0, "")
    content = {"POSIX": posix, "LUSTRE": writer.plain(1, [4, 2]) + writer.layout_record(2, [first], [7])}
    log = read(write(tmp_path / "x.darshan", content, {i: f"/lustre/{i}" for i in (1, 2, 3)}))
    work = darshan.workload(log)
    assert work.files[0].osts == ((4, 2),) and work.files[0].layout == log.layouts[1].layout
    assert [f.layout for f in work.files[1:]] == [None, None]
    assert any(line.startswith("2 of 3 files: the log has no whole layout") for line in work.assumed)
    assert {f.osts for f in darshan.workload(log, placement=False).files} == {None}


def test_only_files_on_lustre_where_the_log_names_one(tmp_path: Path) -> None:
    posix = table("POSIX", [1, 2], 0, BYTES_WRITTEN=5, MAX_BYTE_WRITTEN=4)
    stdio = table("STDIO", 3, 0, BYTES_WRITTEN=5)
    names = {1: "/lustre/a", 2: "/home/b", 3: "<STDOUT>"}
    content = {"POSIX": posix, "STDIO": stdio}
    work = darshan.workload(read(write(tmp_path / "x.darshan", content, names)))
    assert [f.key for f in work.files] == ["/lustre/a"]
    elsewhere = read(write(tmp_path / "y.darshan", content, names, mounts=[("/", "ext4")]))
    assert {f.key for f in darshan.workload(elsewhere).files} == {"/lustre/a", "/home/b"}
    assert [f.key for f in darshan.workload(elsewhere, mount="/home").files] == ["/home/b"]
    with pytest.raises(BadInput, match=r"y\.darshan: expected files with bytes .* below /none, found 'none'"):
        darshan.workload(elsewhere, mount="/none")


def test_a_trace_is_played_at_its_own_times(tmp_path: Path) -> None:
    calls = [(3 * MIB, MIB, 5.0, 5.5), (MIB, MIB, 2.0, 2.5)]
    posix = table(
        "POSIX",
        1,
        -1,
        WRITES=4,
        BYTES_WRITTEN=4 * MIB,
        MAX_BYTE_WRITTEN=4 * MIB - 1,
        F_OPEN_START_TIMESTAMP=1.0,
        F_CLOSE_END_TIMESTAMP=9.0,
    )
    trace = writer.trace_record(1, 1, calls) + writer.trace_record(1, 0, [(0, 2 * MIB, 4.0, 4.5)])
    log = read(write(tmp_path / "x.darshan", {"POSIX": posix, "DXT_POSIX": trace}, {1: "/lustre/a"}, ranks=4))
    work = darshan.workload(log)
    mine = work.operations[work.operations["rank"] == 1]
    assert mine["earliest_s"].tolist() == [2.0, 2.0, 5.0, 5.5] and not mine["delay_s"].any()
    assert (
        mine["offset"].tolist() == [0, MIB, 3 * MIB, 0] and mine["kind"].tolist()[0] == OperationKind.CREATE
    )
    assert set(work.operations["rank"].tolist()) == {0, 1}, "who did it is known from the trace"
    without = darshan.workload(log, trace=False)
    assert (
        set(without.operations["rank"].tolist()) == set(range(4))
        and not without.operations["earliest_s"].any()
    )


def test_a_trace_that_lacks_bytes_is_not_used(tmp_path: Path) -> None:
    posix = table("POSIX", 1, 0, WRITES=4, BYTES_WRITTEN=4 * MIB, MAX_BYTE_WRITTEN=4 * MIB - 1)
    content = {"POSIX": posix, "DXT_POSIX": writer.trace_record(1, 0, [(0, MIB, 1.0, 2.0)])}
    work = darshan.workload(read(write(tmp_path / "x.darshan", content, {1: "/lustre/a"})))
    assert work.moved_bytes(OperationKind.WRITE) == 4 * MIB and not work.operations["earliest_s"].any()
    assert any("the trace lacks bytes" in line for line in work.assumed)


def test_real_traces_keep_every_call() -> None:
    log = read(DATA / "hacc_ssf_posix_n8_p100k.darshan")
    work, calls = darshan.workload(log), segments(log)
    for kind, written in ((OperationKind.WRITE, True), (OperationKind.READ, False)):
        played, logged = work.operations[work.operations["kind"] == kind], calls[calls["write"] == written]
        assert sorted(played["earliest_s"].tolist()) == sorted(logged["start_s"].tolist())
        assert sorted(played["offset"].tolist()) == sorted(logged["offset"].tolist())
        assert played["bytes"].sum() == logged["bytes"].sum() == 55565824


@pytest.mark.parametrize("name", sorted(set(INDEX) - {"ser_cp.darshan"}))
def test_bytes_files_and_ranks_of_real_logs(name: str) -> None:
    row = INDEX[name]
    work = darshan.workload(read(DATA / name), mount="/scratch/run")
    other = OTHER_BYTES.get(name, 0)
    if "ckpt" in name:
        other = sum(f.size_bytes for f in work.files if "/log." in f.key)
        assert 0 < other < 10_000
    assert work.moved_bytes(OperationKind.WRITE) == int(row["expected_bytes_written"]) + other
    assert work.moved_bytes(OperationKind.READ) == int(row["expected_bytes_read"])
    missing = 16 if "partial" in name else 0
    assert (len(work.files), work.ranks) == (int(row["n_files"]) - missing, int(row["ranks"]))
    assert bool(missing) == any("partial" in line for line in work.assumed)


def test_a_copy_that_darshan_did_not_see_is_no_workload() -> None:
    log = read(DATA / "ser_cp.darshan")
    assert log.gap("no-bytes") is not None
    with pytest.raises(BadInput, match="found 'none'"):
        darshan.workload(log, mount="/scratch/run")


@st.composite
def logs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, bool, int, int, float, float, float, float]]]:
    ranks = draw(st.integers(1, 6))
    rows = {
        (record, rank): (
            draw(st.booleans()),
            draw(st.integers(0, 10_000)),
            draw(st.integers(0, 10_000)),
            draw(st.floats(0, 50)),
            draw(st.floats(0, 60)),
            draw(st.floats(0, 20)),
            draw(st.floats(0, 20)),
        )
        for record, rank in draw(
            st.sets(st.tuples(st.integers(1, 4), st.integers(-1, ranks - 1)), min_size=1, max_size=8)
        )
    }
    return ranks, [(record, rank, *row) for (record, rank), row in rows.items()]


def _log(ranks: int, rows: list[tuple[int, int, bool, int, int, float, float, float, float]]) -> DarshanLog:
    from tarazu.trace.darshan.log import ACCESS

    accesses = np.zeros(len(rows), ACCESS)
    for at, (record, rank, stdio, wrote, got, opened, closed, write_s, read_s) in zip(accesses, rows):
        at["record"], at["rank"], at["stdio"] = record, rank, stdio
        at["written_bytes"], at["read_bytes"] = wrote, got
        at["written_end_bytes"], at["read_end_bytes"] = wrote, min(got, 77)
        at["writes"], at["reads"] = wrote // 100, got // 100
        at["open_start_s"], at["close_end_s"], at["write_s"], at["read_s"] = opened, closed, write_s, read_s
    names = {record: f"/f{record}" for record in range(1, 5)}
    return DarshanLog("x", "3.41", ranks, 0, "1", (), 0.0, 100.0, (), names, {}, {}, accesses, {}, ())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.integers(1, 9))
def test_bytes_order_and_ranks_are_kept(
    logged: tuple[int, list[tuple[int, int, bool, int, int, float, float, float, float]]], requests: int
) -> None:
    ranks, rows = logged
    log = _log(ranks, rows)
    wrote, got = int(log.accesses["written_bytes"].sum()), int(log.accesses["read_bytes"].sum())
    if not wrote + got:
        with pytest.raises(BadInput):
            darshan.workload(log)
        return
    work = darshan.workload(log, requests=requests)
    of = work.operations
    assert (work.moved_bytes(OperationKind.WRITE), work.moved_bytes(OperationKind.READ)) == (wrote, got)
    assert (
        (np.diff(of["rank"]) >= 0).all() and (of["delay_s"] >= 0).all() and np.isfinite(of["delay_s"]).all()
    )
    moves = of[(of["kind"] == OperationKind.WRITE) | (of["kind"] == OperationKind.READ)]
    assert (moves["bytes"] > 0).all() and (moves["span_bytes"] > 0).all() and (moves["offset"] >= 0).all()
    sizes = np.array([f.size_bytes for f in work.files])
    assert (moves["offset"] + moves["span_bytes"] <= sizes[moves["file"]]).all()
    created = of["file"][of["kind"] == OperationKind.CREATE].tolist()
    assert sorted(created) == [n for n, f in enumerate(work.files) if not f.exists]
    for record, rank, *_ in rows:
        moved = [row for row in rows if row[0] == record and row[3] + row[4] and row[1] in (rank, -1)]
        key = f"/f{record}"
        number = next((n for n, f in enumerate(work.files) if f.key == key), None)
        if rank >= 0 and number is not None:
            mine = of[(of["rank"] == rank) & (of["file"] == number)]
            assert bool(len(mine)) == bool(moved)
    for rank, file in {(int(o["rank"]), int(o["file"])) for o in of}:
        kinds = of["kind"][(of["rank"] == rank) & (of["file"] == file)]
        assert kinds[0] <= OperationKind.OPEN and kinds[-1] == OperationKind.CLOSE


def test_65536_ranks_in_seconds(tmp_path: Path) -> None:
    number = 65536
    posix = table(
        "POSIX", 1, -1, WRITES=number * 64, BYTES_WRITTEN=number * MIB, MAX_BYTE_WRITTEN=number * MIB - 1
    )
    log = read(write(tmp_path / "x.darshan", {"POSIX": posix}, {1: "/lustre/a"}, ranks=number))
    start_s = time.process_time()
    work = darshan.workload(log)
    assert time.process_time() - start_s < 10
    assert work.moved_bytes(OperationKind.WRITE) == number * MIB and len(work.operations) == 10 * number
