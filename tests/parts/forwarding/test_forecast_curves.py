"""The profile of a step's next run, from its earlier runs and curves or benchmarks."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tarazu.model import JobStep
from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks, Measurement
from tarazu.parts.forwarding.estimate.database import save
from tarazu.parts.forwarding.forecast import profile_of
from tarazu.trace.records import RunRecord
from tests.parts.forwarding.strategies import phase

STEP = JobStep("lustre", 1000, "app", "2", ranks=8, nodes=4)
PHASE = phase(start_s=10.0, end_s=20.0, io_s=10.0, bytes=8 << 30, rank_count=8, processes_per_file=8)
RUN = RunRecord(STEP, 1.0, 110.0, "full", (), phases=(PHASE,))


@pytest.fixture
def curves(tmp_path: Path) -> str:
    path = tmp_path / "curves.csv"
    path.write_text("application,resources,bytes_per_s\napp,1,1e9\napp,4,3e9\napp,4,5e9\nother,1,1e6\n")
    return str(path)


def test_phases_of_the_newest_complete_run(curves: str) -> None:
    failed = msgspec.structs.replace(RUN, exit_status=1, duration_s=1.0)
    older = msgspec.structs.replace(RUN, duration_s=999.0)
    profile, why = profile_of([older, RUN, failed], STEP, curves, "")
    assert profile and (profile.nodes, profile.io_bytes, profile.phases) == (4, 8 << 30, 1)
    assert profile.points == ((1, 1e9), (4, 4e9)) and profile.cpu_s == pytest.approx(110 - 8.59, abs=0.01)
    assert "app" in why and curves in why


@pytest.mark.parametrize(
    ("history", "curves", "benchmarks", "why"),
    [
        ([], "c", "", "no complete earlier run"),
        ([msgspec.structs.replace(RUN, partial=True)], "c", "", "no complete earlier run"),
        ([msgspec.structs.replace(RUN, phases=())], "c", "", "no complete earlier run"),
        ([RUN], "/nowhere.csv", "", "/nowhere.csv"),
        ([RUN], "", "/nowhere.csv", "/nowhere.csv"),
        ([RUN], "", "", "has no curve of app"),
    ],
)
def test_why_there_is_none(history: list[RunRecord], curves: str, benchmarks: str, why: str) -> None:
    profile, told = profile_of(history, STEP, curves, benchmarks)
    assert profile is None and why in told


def test_a_curve_estimated_from_benchmarks(tmp_path: Path) -> None:
    pattern = BenchmarkPattern("ost", "write", "POSIX", "shared", "contiguous", 1 << 20, 1 << 30, 8, 4)
    rates = {1: 1e9, 2: 1.9e9, 4: 3.5e9, 8: 3e9}
    path = tmp_path / "benchmarks.csv"
    save(
        Benchmarks(Measurement(pattern, n, rate, "ior-4.0.0", "", f"id{n}") for n, rate in rates.items()),
        path,
    )
    profile, why = profile_of([RUN], STEP, "", str(path))
    assert profile and "100% of its last run's bytes" in why
    assert dict(profile.points) == pytest.approx(rates, rel=0.01)
    reading = msgspec.structs.replace(PHASE, operation="read")
    other = msgspec.structs.replace(RUN, phases=(reading,))
    assert profile_of([other], STEP, "", str(path)) == (None, f"{path} has nothing like its phases")


@pytest.mark.parametrize("which", ["curves", "benchmarks"])
@pytest.mark.parametrize("kind", ["fifo", "device", "directory", "binary", "large"])
def test_what_is_no_file_of_curves_keeps_no_forecast(tmp_path: Path, kind: str, which: str) -> None:
    path = tmp_path / "file"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "directory":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(b"application,resources,bytes_per_s\n\xff\0")
    else:
        path.touch()
        os.truncate(path, (32 << 20) + 1)
    given = ("", str(path)) if which == "benchmarks" else (str(path), "")
    profile, why = profile_of([RUN], STEP, *given)
    assert profile is None and str(path) in why


@pytest.mark.parametrize(
    ("rates", "duration", "why"),
    [
        ("app,1,0.001\napp,2,1e18\n", 110.0, "bytes a second"),
        ("app,1,1e9\n", float("inf"), "seconds of computing"),
        ("app,1,1e9\n", float("nan"), "seconds of computing"),
        ("".join(f"app,{n},1e9\n" for n in range(1, 4098)), 110.0, "more than 4096"),
    ],
)
def test_absurd_numbers_are_told_and_not_sent(tmp_path: Path, rates: str, duration: float, why: str) -> None:
    path = tmp_path / "curves.csv"
    path.write_text("application,resources,bytes_per_s\n" + rates)
    run = msgspec.structs.replace(RUN, duration_s=duration)
    profile, told = profile_of([run], STEP, str(path), "")
    assert profile is None and why in told


def test_of_recorded_phases_what_is_unknown_is_no_hindrance(tmp_path: Path) -> None:
    """A light recording: no requests, no order."""
    pattern = BenchmarkPattern("ost", "write", "POSIX", "shared", "contiguous", 1 << 20, 1 << 30, 8, 4)
    path = tmp_path / "benchmarks.csv"
    save(Benchmarks([Measurement(pattern, 2, 1e9, "ior-4.0.0", "", "id")]), path)
    light = msgspec.structs.replace(PHASE, requests=0, spatiality="unknown", io_s=0.0)
    profile, why = profile_of([msgspec.structs.replace(RUN, phases=(light,))], STEP, "", str(path))
    assert profile and dict(profile.points) == pytest.approx({2: 1e9}), why
    assert profile.cpu_s == pytest.approx(110 - 8.59, abs=0.01)
