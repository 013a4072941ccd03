from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tarazu.errors import TraceError
from tarazu.trace.darshan.log import SEGMENT
from tarazu.trace.darshan.read import read
from tarazu.trace.darshan_runs import import_log
from tarazu.trace.phases.calls import parts_of_calls
from tarazu.trace.phases.darshan import MODULES, phases
from tests.trace.darshan import writer
from tests.trace.darshan.writer import table, write

DATA = Path(__file__).parents[2] / "data"
MIB = 1 << 20


def test_a_file_that_is_opened_again_is_several_phases_by_its_trace_and_one_by_its_counters(
    tmp_path: Path,
) -> None:
    """Two ranks write four blocks each, three times, two seconds apart, into the same files."""
    counters = table(
        "POSIX",
        [1, 2],
        [0, 1],
        OPENS=3,
        WRITES=12,
        BYTES_WRITTEN=12 * MIB,
        CONSEC_WRITES=9,
        SEQ_WRITES=9,
        F_WRITE_START_TIMESTAMP=1.0,
        F_WRITE_END_TIMESTAMP=5.4,
        F_WRITE_TIME=1.2,
    )
    calls = [
        (block * MIB, MIB, 1 + 2 * again + block / 10, 1.1 + 2 * again + block / 10)
        for again in range(3)
        for block in range(4)
    ]
    trace = writer.trace_record(1, 0, calls, []) + writer.trace_record(2, 1, calls, [])
    names = {1: "/lustre/a", 2: "/lustre/b"}
    (one,) = phases(read(write(tmp_path / "a.darshan", {"POSIX": counters}, names, ranks=2)))
    assert (one.spatiality, one.requests, one.io_s, one.files) == ("contiguous", 24, pytest.approx(1.2), 2)
    found = phases(
        read(write(tmp_path / "b.darshan", {"POSIX": counters, "DXT_POSIX": trace}, names, ranks=2))
    )
    assert [(round(p.start_s, 3), round(p.end_s, 3)) for p in found] == [(1, 1.4), (3, 3.4), (5, 5.4)]
    for phase in found:
        assert (phase.bytes, phase.requests, phase.files, phase.spatiality) == (8 * MIB, 8, 2, "contiguous")
        assert phase.request_sizes == ((MIB, 8),) and phase.io_s == pytest.approx(0.4)


def test_a_trace_that_lacks_bytes_is_not_believed(tmp_path: Path) -> None:
    counters = table(
        "POSIX",
        1,
        0,
        OPENS=1,
        WRITES=2,
        BYTES_WRITTEN=20,
        F_WRITE_START_TIMESTAMP=1.0,
        F_WRITE_END_TIMESTAMP=9.0,
        F_WRITE_TIME=0.5,
    )
    trace = writer.trace_record(1, 0, [(0, 10, 1.0, 1.1)], [])
    (phase,) = phases(read(write(tmp_path / "x.darshan", {"POSIX": counters, "DXT_POSIX": trace}, {1: "/a"})))
    assert (phase.bytes, phase.end_s, phase.io_s) == (20, 9, 0.5)


@pytest.mark.parametrize("time", [float("nan"), float("inf")])
def test_calls_at_no_time_are_one_line(tmp_path: Path, time: float) -> None:
    counters = table("POSIX", 1, 0, OPENS=1, WRITES=1, BYTES_WRITTEN=10, F_WRITE_END_TIMESTAMP=9.0)
    trace = writer.trace_record(1, 0, [(0, 10, 1.0, time)], [])
    log = read(write(tmp_path / "x.darshan", {"POSIX": counters, "DXT_POSIX": trace}, {1: "/a"}))
    with pytest.raises(TraceError, match="a finite end_s of each call in DXT_POSIX"):
        phases(log)


def test_calls_that_overlap_count_once() -> None:
    calls = np.array(
        [(1, 0, True, 0, 5, 0.0, 2.0), (1, 0, True, 5, 5, 1.0, 3.0), (1, 0, True, 3, 2, 9.0, 9.5)], SEGMENT
    )
    first, second = parts_of_calls(calls, "POSIX", 1.0, True, {}, {}, {})
    assert (first.io_s, first.consecutive, first.end_s, first.bytes) == (3, 1, 3, 10)
    assert (second.io_s, second.consecutive, second.start_s) == (0.5, 0, 9)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("ior_hdf5_ssf_n8_t256k_s4.darshan", {"HDF5", "MPI-IO", "POSIX"}),
        ("ior_mpiio_coll_ssf_n8_t1m_wr.darshan", {"MPI-IO", "POSIX"}),
    ],
)
def test_the_same_bytes_are_told_once_unless_all_interfaces_are_asked_for(name: str, seen: set[str]) -> None:
    log = read(DATA / "phases" / name)
    data = [p for p in phases(log, api="all") if p.bytes > MIB]
    assert {p.api for p in data} == seen
    written = {api: sum(p.bytes for p in data if p.api == api and p.operation == "write") for api in seen}
    top = [p for p in phases(log) if p.bytes > MIB]
    assert len({p.api for p in top}) == 1
    for api in seen:
        alone = [p for p in phases(log, api=api) if p.bytes > MIB]  # type: ignore[arg-type]
        assert sum(p.bytes for p in alone if p.operation == "write") == written[api]


def test_time_of_a_reduced_record_is_that_of_the_slowest_rank(tmp_path: Path) -> None:
    shared = table(
        "POSIX", 1, -1, OPENS=4, READS=4, WRITES=4, BYTES_READ=40, BYTES_WRITTEN=40,
        F_READ_START_TIMESTAMP=5.0, F_READ_END_TIMESTAMP=9.0, F_WRITE_START_TIMESTAMP=1.0, F_WRITE_END_TIMESTAMP=5.0,
        F_READ_TIME=2.0, F_WRITE_TIME=6.0, F_SLOWEST_RANK_TIME=4.0,
    )  # fmt: skip
    wrote, got = phases(read(write(tmp_path / "x.darshan", {"POSIX": shared}, {1: "/a"}, ranks=4)))
    assert (wrote.io_s, got.io_s) == (3.0, 1.0) and wrote.sharing == got.sharing == "shared"


def test_fsync_is_time_of_writing_after_the_last_write(tmp_path: Path) -> None:
    one = table(
        "POSIX",
        1,
        0,
        OPENS=1,
        WRITES=1,
        BYTES_WRITTEN=5,
        F_WRITE_START_TIMESTAMP=1.0,
        F_WRITE_END_TIMESTAMP=1.1,
        F_WRITE_TIME=3.0,
    )
    (phase,) = phases(read(write(tmp_path / "x.darshan", {"POSIX": one}, {1: "/a"})))
    assert (phase.io_s, phase.end_s) == (3.0, 4.0)


def test_of_a_serial_program_the_process_is_rank_0(tmp_path: Path) -> None:
    one = table("POSIX", [1, 2], [-1, 0], OPENS=1, WRITES=1, BYTES_WRITTEN=5)
    (phase,) = phases(read(write(tmp_path / "x.darshan", {"POSIX": one}, {1: "/a", 2: "<STDOUT>"})))
    assert (phase.ranks, phase.sharing, phase.bytes) == ((0,), "unique", 5)


def test_times_that_cannot_be_are_one_line(tmp_path: Path) -> None:
    one = table("MPI-IO", 1, 0, INDEP_WRITES=1, BYTES_WRITTEN=5, F_WRITE_TIME=float("nan"))
    with pytest.raises(TraceError, match="MPIIO_F_WRITE_TIME"):
        phases(read(write(tmp_path / "x.darshan", {"MPI-IO": one}, {1: "/a"})))


def test_an_imported_run_keeps_the_phases_below_the_mount() -> None:
    path = DATA / "traces" / "ckpt_fpp_n8_s8.darshan"
    run = import_log(path, mount="/scratch/run")
    assert [p.bytes for p in run.phases if p.api == "POSIX"] == [
        p.bytes for p in phases(read(path)) if p.api == "POSIX"
    ]
    assert import_log(path, mount="/lustre").phases == ()


def test_a_run_is_imported_without_phases_where_its_trace_cannot_be_read(tmp_path: Path) -> None:
    one = table("POSIX", 1, 0, OPENS=1, WRITES=1, BYTES_WRITTEN=5, MAX_BYTE_WRITTEN=4)
    content = {"POSIX": one, "MPI-IO": table("MPI-IO", 1, 0, INDEP_WRITES=1, F_WRITE_TIME=float("nan"))}
    run = import_log(write(tmp_path / "x.darshan", content, {1: "/lustre/a"}), mount="/lustre")
    assert len(run.files) == 1 and run.phases == ()


def test_every_interface_has_a_level() -> None:
    assert set(MODULES.values()) == {"POSIX", "STDIO", "MPI-IO", "HDF5", "PNETCDF"}
