"""The profile of a step's next run, from its earlier runs and curves or benchmarks."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tarazu.daemons.forecasts.curves import profile_of
from tarazu.model import JobStep
from tarazu.trace.phases.phase import Phase
from tarazu.trace.records import FileRecord, RunRecord

STEP = JobStep("lustre", 1000, "app", "2", ranks=8, nodes=4)
PHASE = Phase(
    start_s=10.0, end_s=20.0, operation="write", ranks=None, rank_count=8, bytes=8 << 30, io_s=10.0, api="POSIX",
    requests=8192, spatiality="contiguous", sharing="shared", files=1, processes_per_file=8,
)  # fmt: skip
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


def test_a_run_of_before_phases_were_kept(curves: str) -> None:
    file = FileRecord("/a", "/a", "/a", 0, (0,), 0, 0, 5.0, 4 << 30)
    profile, _ = profile_of([RunRecord(STEP, 1.0, 100.0, "light", (file,))], STEP, curves, "")
    assert profile and profile.io_bytes == 4 << 30 and 98 < profile.cpu_s < 100


@pytest.mark.parametrize(
    ("history", "curves", "benchmarks", "why"),
    [
        ([], "c", "", "no complete earlier run"),
        ([msgspec.structs.replace(RUN, partial=True)], "c", "", "no complete earlier run"),
        ([RUN], "/nowhere.csv", "", "/nowhere.csv"),
        ([RUN], "", "/nowhere.csv", "/nowhere.csv"),
        ([msgspec.structs.replace(RUN, step=STEP)], "", "", "has no curve of app"),
    ],
)
def test_why_there_is_none(history: list[RunRecord], curves: str, benchmarks: str, why: str) -> None:
    profile, told = profile_of(history, STEP, curves, benchmarks)
    assert profile is None and why in told


def test_a_name_without_a_measured_curve(curves: str) -> None:
    step = msgspec.structs.replace(STEP, application="unheard")
    assert profile_of([RUN], step, curves, "") == (None, f"{curves} has no curve of unheard")
