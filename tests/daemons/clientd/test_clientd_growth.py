"""Planning from large histories with real daemons: a small version of `python -m tests.benchmarks planning`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.benchmarks.planning.bench_planning import measure

KINDS = ["volatile", "shared"] if os.environ.get("TARAZU_SOAK") else ["shared"]


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.long
def test_ten_runs_are_planned_in_memory_and_time_that_grow_with_their_files(
    tmp_path: Path, kind: str
) -> None:
    """100,000 files in each took minutes and gigabytes; the benchmark holds them to 15 s and 600 MB."""
    small, large = (measure(_made(tmp_path / str(files)), kind, 10, files) for files in (1000, 4000))
    assert (small.files, large.files) == (1000, 4000)
    assert large.peak_mb - large.before_mb < 40, "350 MB for 100,000 files is 14 MB for 4,000"
    assert large.before_mb < 100, "forecasts and their imports are other processes'"
    assert large.cpu_s < 10 * max(small.cpu_s, 0.2)
    assert large.forecast_cpu_s < 10 * max(small.forecast_cpu_s, 0.2)
    assert large.database_mb < 8


def _made(path: Path) -> Path:
    path.mkdir()
    return path
