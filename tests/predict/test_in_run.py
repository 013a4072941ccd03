from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tarazu.predict.aipa import extend
from tarazu.trace.records import RunRecord

Build = Callable[..., RunRecord]
MIB = 1 << 20


def stepped(build: Build, steps: int, interval_s: float = 10.0, growth: int = 4) -> RunRecord:
    return build(
        lambda rank: [(f"/c/ckpt.{100 * s:05}.{rank}", (40 + growth * s) * MIB) for s in range(steps)],
        ranks=3,
        interval_s=interval_s,
    )


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_nothing_is_predicted_before_the_third_step(build: Build, steps: int) -> None:
    run = stepped(build, steps)
    assert extend(run, run.step, horizon_s=1800).files == ()


@pytest.mark.parametrize("steps", [3, 5, 8])
def test_the_next_steps_of_a_first_run(build: Build, steps: int) -> None:
    run, later = stepped(build, steps), stepped(build, 2 * steps)
    prediction = extend(run, run.step, horizon_s=1800)
    known = {f.key for f in run.files}
    assert {f.name.key: f.size_bytes for f in prediction.files} == {
        f.key: f.size_bytes for f in later.files if f.key not in known
    }
    real = {f.key: f for f in later.files}
    for f in prediction.files:
        assert f.name.nth_loose == real[f.name.key].nth_loose and f.name.precise == real[f.name.key].precise
        assert f.at_s == pytest.approx(real[f.name.key].at_s, abs=0.1)


def test_the_horizon_bounds_how_far(build: Build) -> None:
    run = stepped(build, 6, interval_s=600.0)
    assert len(extend(run, run.step, horizon_s=1800).files) == 3 * 3
    assert len(extend(run, run.step, horizon_s=60).files) == 3, "the next step is always worth asking for"


def test_ranks_that_lag_behind_are_predicted_too(build: Build) -> None:
    run = stepped(build, 4)
    behind = tuple(f for f in run.files if not (f.rank == 1 and f.nth_loose == 3))
    keys = {
        f.name.key for f in extend(msgspec.structs.replace(run, files=behind), run.step, horizon_s=1800).files
    }
    assert "/c/ckpt.00300.1" in keys and "/c/ckpt.00400.1" in keys and "/c/ckpt.00300.0" not in keys


def test_a_step_that_is_being_written_does_not_count_as_small(build: Build) -> None:
    run = stepped(build, 5)
    files = tuple(
        msgspec.structs.replace(f, closed=False, size_bytes=0) if f.nth_loose == 4 else f for f in run.files
    )
    prediction = extend(msgspec.structs.replace(run, files=files), run.step, horizon_s=1800)
    sizes = {f.name.key: f.size_bytes for f in prediction.files}
    assert sizes["/c/ckpt.00500.0"] == 60 * MIB


def test_many_files_at_once_are_no_steps(build: Build) -> None:
    run = stepped(build, 9, interval_s=0.0001)
    assert extend(run, run.step, horizon_s=1800).files == ()


def test_files_that_the_run_has_created_are_not_promised_again(build: Build) -> None:
    """Date and job in the names: the guessed keys are not those of the files that are there."""
    run = build(
        lambda rank: [(f"/c/4000/20260101T12{s:02}00/out.{s % 2}.{rank}", (40 + s) * MIB) for s in range(4)],
        ranks=3,
    )
    prediction = extend(run, run.step, horizon_s=1800)
    made = {(f.loose, f.rank, f.nth_loose) for f in run.files}
    guessed = {(f.name.loose, f.name.rank, f.name.nth_loose) for f in prediction.files}
    assert len(prediction.files) == 3 * 4 and not made & guessed
    assert {n for _, _, n in guessed} == {4, 5, 6, 7}


def test_steps_named_by_date_alone_are_predicted(build: Build) -> None:
    """Their guessed key is that of the last file: the name is not known, only its template."""
    run = build(lambda rank: [(f"/c/20260101T12{s:02}00.{rank}", 40 * MIB) for s in range(3)], ranks=2)
    prediction = extend(run, run.step, horizon_s=1800)
    assert [f.name.volatile for f in prediction.files] == [True] * 6
    assert {(f.name.rank, f.name.nth_loose) for f in prediction.files} == {
        (r, n) for r in (0, 1) for n in (3, 4, 5)
    }
