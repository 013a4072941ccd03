"""The line of a job says what was made."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from tarazu import left
from tarazu.config import Settings
from tarazu.left import AS_GOOD, SILENT, NotPlaced
from tarazu.model import FileName
from tarazu.run import end, not_placed
from tarazu.run.plan.accepted import Plans
from tarazu.run.plan.map_writer import MapWriter
from tarazu.run.plan.schedule import PlanSchedule
from tarazu.run.plan.waiting import Waiting
from tarazu.trace.records import NotPlacedFiles, why_of
from tests.trace.test_history import sample

STEP: Any = SimpleNamespace(
    plans=[],
    fs_names=["scratch"],
    schedules={},
    job=SimpleNamespace(job_id=""),
    run_id="r",
    mode="place",
)


def schedule(**plans: Any) -> Any:
    """That of a step, with what its plans know."""
    asking: Any = SimpleNamespace(
        settings=Settings(), step=sample().step, waiting=Waiting(), mounts=[], side=None
    )
    its = Plans(asking, MapWriter(Path("/nowhere")))
    for name, value in plans.items():
        setattr(its, name, value)
    history: Any = SimpleNamespace(paths=lambda *_: [])
    nobody: Any = None
    return PlanSchedule(its, history, threading.Event(), nobody, nobody, nobody, lambda: 5.0)


def reasons(of: PlanSchedule | None, *files: dict[str, Any], mode: str = "place") -> dict[str, int]:
    """Reason → files, of files with these fields."""
    one = sample().files[0]
    made = tuple(
        msgspec.structs.replace(one, key=f"/f{n}", loose=f"/f{n}", existed=False, **fields)
        for n, fields in enumerate(files)
    )
    run = msgspec.structs.replace(sample(), files=made)
    step: Any = SimpleNamespace(mode=mode, schedules={run.step.fs_name: of} if of else {})
    decided = not_placed.decided(step, run, "")
    assert all((why_of(decided, n) is None) == (f.outcome == "hit") for n, f in enumerate(made))
    return {str(of.why): of.files for of in decided.not_placed}


def name(key: str) -> FileName:
    return FileName(key, key, key, False, 0, 0, 0)


def test_each_file_has_the_reason_that_the_plan_has_for_its_name() -> None:
    """`left=45` of 42 files: plans counted those that they expected, and the commonest reason was everybody's."""
    plans = schedule()
    plans.plans.left.add(Counter({"smaller than layout.min_size 64M": 3, AS_GOOD: 1}), guess=False)
    plans.plans.left.name({"smaller than layout.min_size 64M": [name("/f1"), name("/f7"), name("/f8")]})
    plans.plans.left.name({AS_GOOD: [name("/f2")]})
    plans.plans.planned_files = 1
    found = reasons(plans, {"outcome": "hit"}, *[{"outcome": "miss"}] * 3)
    assert found == {
        "too small: smaller than layout.min_size 64M": 1,
        f"no gain: {AS_GOOD}": 1,
        "not expected: none of the 1 that were planned": 1,
    }


def test_a_late_plan_is_said_with_its_seconds() -> None:
    """`no forecast: no earlier run …`, where the plan had come 1.7 s after the program's beginning."""
    late = schedule(mapped_at=time.monotonic() - 1.5)
    (said,) = reasons(late, {"outcome": "late"})
    assert said == "too late: the plan came 3.5 s after the program began, run.wait_s is 2 s"
    late._note(NotPlaced(SILENT, "mdsd: expected an answer within 3 s, found none"))
    assert "before that" not in next(iter(reasons(late, {"outcome": "late"})))


def test_a_plan_that_never_came_is_not_called_no_forecast() -> None:
    waiting = schedule()
    assert [*reasons(waiting, {"outcome": "unmanaged"})] == [
        "too late: the program ended before a plan was asked for"
    ]
    waiting.plans.waiting.begin()
    waiting.plans.waiting.at("forecast")
    (said,) = reasons(waiting, {"outcome": "unmanaged"})
    assert said.startswith("too late: no plan within 0.") and "clientd has been forecasting for 0." in said
    waiting.plans.waiting._stage = ("mdsd", time.monotonic() - 2.4)
    (said,) = reasons(waiting, {"outcome": "unmanaged"})
    assert said.startswith("daemon silent: no plan within ") and "mdsd has not answered for 2.4 s" in said


def test_what_the_library_knows_is_the_reason() -> None:
    found = reasons(
        schedule(),
        {"outcome": "refused", "errno": 28},
        {"outcome": "skipped", "errno": 2},
        {"outcome": "raced"},
        {"outcome": "partly"},
        {"outcome": "advised"},
    )
    assert {of.partition(":")[0] for of in found} == {
        "refused",
        "own layout",
        "overtaken",
        "partly",
        "advising",
    }
    assert "refused: No space left on device" in found and f"own layout: {left.SKIPPED[2]}" in found
    assert [*reasons(None, {"outcome": "unmanaged"}, mode="observe")] == [left.sentence(left.OBSERVING)]


def test_the_line_says_why_files_were_not_placed() -> None:
    run = msgspec.structs.replace(
        sample(), not_placed=(NotPlacedFiles(NotPlaced(left.TOO_LATE, "the plan came 3.4 s after"), 40),)
    )
    line = end._summary_line(STEP, [run], [], "")
    assert " stopped=" not in line and " left=40 why='too late: the plan came 3.4 s after' record=" in line
    # It was enabled again: whether on this node or another, nobody knows at the end.
    line = end._summary_line(STEP, [msgspec.structs.replace(run, passed_over=3)], [], "")
    assert " stopped='for a while' passed_over=3 " in line
    both = [NotPlacedFiles(NotPlaced(left.NOT_SEEN, "planned 60 files, saw none"), 60)]
    line = end._summary_line(STEP, [run], ["one", "two"], "", both)
    assert (
        "left=100 why='not seen: planned 60 files, saw none (60); too late: the plan came 3.4 s after (40)'"
        in line
    )
    assert line.endswith(" problem='one; two'")


def test_files_are_no_misses_where_no_map_held_any() -> None:
    """The next run was recorded in full, and forecast from this one alone: all its files "were not found"."""
    missed = msgspec.structs.replace(sample().files[0], outcome="miss")
    run = msgspec.structs.replace(sample(), files=(missed,))

    def outcome(plans: Any) -> str:
        return end._as_planned(run, plans).files[0].outcome

    assert outcome(SimpleNamespace(planned_files=3)) == "miss"
    assert outcome(SimpleNamespace(planned_files=0)) == outcome(None) == "unmanaged"
