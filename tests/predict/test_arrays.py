"""Tasks of job arrays: each is a run of the application, with an index that is known before it starts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tarazu.predict.aipa import forecast
from tarazu.trace.history import History
from tarazu.trace.past import read_past
from tarazu.trace.records import RunRecord

Build = Callable[..., RunRecord]
MIB = 1 << 20
ARRAY_JOB = "7000"


def task(build: Build, index: int, *, ranks: int = 1, number: int | None = None) -> RunRecord:
    """A task whose files hold array job, index and rank in their names, and grow with the index."""

    def files(rank: int) -> list[tuple[str, int]]:
        return [
            (f"/sweep/out_{ARRAY_JOB}_{index}.{rank:03}", (100 + 20 * index) * MIB),
            (f"/sweep/case{index:04}/restart.{rank}", 64 * MIB),
        ]

    return build(
        files,
        number=index if number is None else number,
        ranks=ranks,
        job_id=str(7001 + index),
        array_job=ARRAY_JOB,
        array_index=index,
    )


def written(tmp_path: Path, runs: list[RunRecord]) -> list[RunRecord]:
    """The runs by way of history files."""
    history = History(tmp_path / "history")
    for run in runs:
        history.append(run)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(path, "rb")) for path in history.paths("lustre", "app")]
        past, problems = read_past([file.fileno() for file in files], len(runs))
    assert not problems and len(past) == len(runs)
    return past  # type: ignore[return-value]


@pytest.mark.parametrize("ranks", [1, 6])
@pytest.mark.parametrize("indices", [(0, 1, 2, 3), (3, 1, 7, 11), (2, 1, 0, 4), (5, 2, 9, 40)])
def test_a_task_is_predicted_from_other_tasks_of_its_array(
    build: Build, tmp_path: Path, indices: tuple[int, ...], ranks: int
) -> None:
    runs = [task(build, index, ranks=ranks, number=n) for n, index in enumerate(indices)]
    history = written(tmp_path, runs[:-1])
    prediction = forecast(history, runs[-1].step)
    assert {f.name.key: f.size_bytes for f in prediction.files} == {
        f.key: f.size_bytes for f in runs[-1].files
    }
    real = {f.key: (f.precise, f.loose, f.rank, f.volatile) for f in runs[-1].files}
    assert {
        f.name.key: (f.name.precise, f.name.loose, f.name.rank, f.name.volatile) for f in prediction.files
    } == real


def test_sizes_that_follow_the_index_say_so(build: Build) -> None:
    runs = [task(build, index) for index in (4, 1, 6, 3)]
    reports = forecast(runs[:-1], runs[-1].step).series
    assert any("array index" in report.size.detail for report in reports)


def test_two_tasks_explain_nothing(build: Build) -> None:
    runs = [task(build, index) for index in (4, 5, 60)]
    details = [report.size.detail for report in forecast(runs[:-1], runs[-1].step).series]
    assert not any("array index" in detail for detail in details)


def test_one_task_names_the_next(build: Build) -> None:
    first, second = task(build, 3), task(build, 8)
    assert {f.name.key for f in forecast([first], second.step).files} == {f.key for f in second.files}


def test_runs_from_before_arrays_were_known_are_used_for_what_they_hold(build: Build, tmp_path: Path) -> None:
    def plain(run: RunRecord) -> RunRecord:
        step = msgspec.structs.replace(run.step, array_job="", array_index=None)
        files = tuple(msgspec.structs.replace(f, precise=f.key.replace("000", "{rank}")) for f in run.files)
        return msgspec.structs.replace(run, step=step, files=files)

    runs = [task(build, index) for index in (3, 4, 5, 6)]
    history = written(tmp_path, [plain(runs[0]), plain(runs[1]), runs[2]])
    prediction = forecast(history, runs[-1].step)
    assert {f.name.key for f in prediction.files} == {f.key for f in runs[-1].files}
    only_old = forecast(written(tmp_path / "old", [plain(run) for run in runs[:3]]), runs[-1].step)
    assert {f.name.loose for f in only_old.files} == {f.loose for f in runs[-1].files}


@pytest.mark.parametrize("changes", [{"array_index": -1}, {"array_index": 1 << 40}, {"array_job": "7" * 300}])
def test_an_array_that_cannot_be_is_not_forecast(build: Build, changes: dict[str, int | str]) -> None:
    run = task(build, 1)
    prediction = forecast([run], msgspec.structs.replace(run.step, **changes))
    assert not prediction.files and "expected" in prediction.warnings[0]
