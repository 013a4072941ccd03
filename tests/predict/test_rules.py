from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.predict.rules import MissTracker, decide, miss_rate
from tarazu.trace.history import History
from tarazu.trace.records import RunRecord

Build = Callable[..., RunRecord]


def with_outcomes(build: Build, hits: int, misses: int, late: int = 0, **fields: Any) -> RunRecord:
    outcomes = ["hit"] * hits + ["miss"] * misses + ["late"] * late
    run = build(lambda rank: [(f"/f.{i}", 1) for i in range(len(outcomes))], ranks=1, **fields)
    files = tuple(msgspec.structs.replace(f, outcome=o) for f, o in zip(run.files, outcomes, strict=True))
    return msgspec.structs.replace(run, files=files)


def test_late_creates_are_managed_but_no_misses() -> None:
    assert miss_rate({"hit": 5, "miss": 1, "late": 4}) == 0.1
    assert miss_rate({"late": 10}) == 0.0
    assert miss_rate({"miss": 1, "unmanaged": 50, "skipped": 50}) == 1.0
    assert miss_rate({}) == 0.0


def test_ten_percent_predict_again_however_often() -> None:
    tracker = MissTracker()
    assert not tracker.predicts({"hit": 91, "miss": 9})
    for times in range(1, 6):
        assert tracker.predicts({"hit": 90 * times, "miss": 10 * times})


def test_misses_are_counted_anew_after_a_prediction() -> None:
    tracker = MissTracker()
    assert tracker.predicts({"hit": 80, "miss": 20})
    assert not tracker.predicts({"hit": 180, "miss": 21})


def test_first_run_is_recorded_in_full() -> None:
    decision = decide([])
    assert (decision.record_mode, decision.retrain, decision.reason) == ("full", False, "first run")


def test_good_runs_are_recorded_lightly(build: Build) -> None:
    decision = decide([with_outcomes(build, 19, 1)])
    assert (decision.record_mode, decision.retrain, decision.since) == ("light", False, 0)


def test_a_run_that_found_less_than_half_is_recorded_again(build: Build) -> None:
    good, bad = with_outcomes(build, 10, 0), with_outcomes(build, 4, 6)
    decision = decide([good, bad])
    assert decision.record_mode == "full" and decision.retrain and "60%" in decision.reason
    assert decision.since == 1
    assert decide([good, with_outcomes(build, 0, 0, late=9)]).record_mode == "light"


def test_thirty_percent_over_runs_retrain_from_where_it_began(build: Build) -> None:
    good, poor = with_outcomes(build, 10, 0), with_outcomes(build, 17, 3)
    assert not decide([good, good, poor]).retrain
    decision = decide([good, good, poor, poor])
    assert decision.retrain and decision.since == 2 and decision.record_mode == "light"
    assert not decide([good, poor, poor, good]).retrain


def test_changed_sharing_is_recorded_in_full(build: Build) -> None:
    full = with_outcomes(build, 3, 0)
    light = msgspec.structs.replace(
        full, mode="light", files=tuple(msgspec.structs.replace(f, writers=4) for f in full.files)
    )
    decision = decide([full, light])
    assert decision.record_mode == "full" and "shared now" in decision.reason
    same = msgspec.structs.replace(full, mode="light")
    assert decide([full, same]).record_mode == "light"


def test_entirely_new_names_are_recorded_in_full(build: Build) -> None:
    other = build(lambda rank: [("/else/where", 1)], ranks=1, number=1)
    decision = decide([with_outcomes(build, 3, 0), msgspec.structs.replace(other, mode="light")])
    assert decision.record_mode == "full" and "no file" in decision.reason


@pytest.mark.parametrize("runs", [1, 3])
def test_history_without_any_full_recording_asks_for_one(build: Build, runs: int) -> None:
    light = msgspec.structs.replace(with_outcomes(build, 3, 0), mode="light")
    assert decide([light] * runs).record_mode == "full"


@pytest.mark.parametrize("name", ["/f", "/caf\udce9", "//f"])
def test_the_first_lines_of_a_history_decide_as_all_of_it(build: Build, tmp_path: Path, name: str) -> None:
    """A job step waits for the decision, and earlier runs may have made a hundred thousand files each."""

    def run(mode: str, hits: int, misses: int, writers: int = 1) -> RunRecord:
        it = with_outcomes(build, hits, misses)
        files = tuple(
            msgspec.structs.replace(f, loose=f"{name}{n % 3}", writers=writers)
            for n, f in enumerate(it.files)
        )
        job = msgspec.structs.replace(it.step, application=f"app{name[1:]}")
        return msgspec.structs.replace(it, mode=mode, files=files, step=job)

    full, light, shared = run("full", 9, 0), run("light", 9, 0), run("light", 9, 0, writers=4)
    poor, missed = run("light", 8, 2), run("light", 2, 8)
    for n, runs in enumerate(
        ([], [full], [light], [full, light], [full, shared], [full, poor, poor], [full, light, missed])
    ):
        history = History(tmp_path / str(n))
        for at, each in enumerate(runs):
            history.append(msgspec.structs.replace(each, start_s=1e9 + at))
        first_lines, problems = history.recorded(full.step.fs_name, full.step.application, 5)
        assert not problems and len(first_lines) == len(runs)
        assert decide(first_lines) == decide(runs)
