"""The line of a job says what was made."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import msgspec

from tarazu.left import AS_GOOD, NO_RIGHT
from tarazu.run import end, why
from tarazu.trace.records import DirectoryRecord
from tests.trace.test_history import sample


def test_no_more_files_are_left_than_were_made() -> None:
    """`left=45` of 42 files: plans count those that they expect, and some are in two plans."""
    run = sample()
    one = run.files[0]
    files = tuple(
        msgspec.structs.replace(one, key=f"/f{n}", outcome="hit" if n < 2 else "miss") for n in range(42)
    )
    run = msgspec.structs.replace(run, files=files)
    plan: Any = SimpleNamespace(
        step=run.step,
        last=SimpleNamespace(status="planned", reason=""),
        last_placed=None,
        files_left=False,
        left=Counter({"below layout.min_size": 41, "not forecast": 4}),
        left_osts={},
    )
    step: Any = SimpleNamespace(
        plans=[plan],
        fs_names=[run.step.fs_name],
        schedules={},
        job=SimpleNamespace(job_id=""),
        site=SimpleNamespace(seen=""),
        directories=SimpleNamespace(map_here="/nowhere"),
        run_id="r",
        mode="place",
    )
    line = end._summary_line(step, [run], [], "")
    assert " stopped=" not in line
    assert "files=42" in line and "left=40 because='below layout.min_size (40), not forecast (4)'" in line
    assert " why='not expected' " in line
    # It was enabled again: whether on this node or another, nobody knows at the end.
    line = end._summary_line(step, [msgspec.structs.replace(run, passed_over=3)], [], "")
    assert " stopped='for a while' passed_over=3 " in line


def test_the_line_says_in_a_word_why_files_were_left() -> None:
    run = sample()
    one = run.files[0]

    def said(
        outcome: str,
        mode: str = "place",
        *,
        problem: str = "",
        stopped: str = "",
        files_left: bool = False,
        **last: Any,
    ) -> str:
        made = msgspec.structs.replace(run, files=(msgspec.structs.replace(one, outcome=outcome),) * 3)
        plan: Any = SimpleNamespace(
            step=run.step,
            last=SimpleNamespace(**{"status": "planned", "reason": ""} | last) if last else None,
            last_placed=None,
            files_left=files_left,
            left=Counter(last.get("left", ())),
        )
        schedules = {run.step.fs_name: SimpleNamespace(problem=problem)}
        return why.word(SimpleNamespace(plans=[plan], schedules=schedules, mode=mode), [made], stopped)  # type: ignore[arg-type]

    assert said("hit") == ""
    assert said("unmanaged", "observe") == "observing"
    assert said("unmanaged") == "no forecast"
    assert said("unmanaged", problem="Unavailable: clientd at /run/x: No such file") == "daemon silent"
    assert said("unmanaged", status="unavailable", reason="no answer") == "daemon silent"
    assert said("unmanaged", status="left to Lustre", reason=AS_GOOD) == "no gain"
    assert said("miss", status="planned", left={"smaller than layout.min_size 64M": 2}) == "too small"
    assert said("miss", status="planned", left={"smaller than layout.min_size 64M": 1}) == "not expected"
    assert said("refused", status="planned") == "refused"
    assert said("unmanaged", status="planned", files_left=True) == "too late", "directories had come"
    assert said("hit", stopped="stopped by /etc/tarazu/stop") == "disabled"


def test_small_files_are_no_misses_of_a_map_that_holds_directories() -> None:
    """The next run was recorded in full, and forecast from this one alone: all its files "were not found"."""
    one = sample().files[0]
    made = DirectoryRecord("/d", "/d", "/d", 0, (0,), 0, 0, 1.0, outcome="miss")
    run = msgspec.structs.replace(
        sample(), files=(msgspec.structs.replace(one, outcome="miss"),), directories=(made,)
    )

    def outcomes(files: int, directories: int) -> tuple[str, str]:
        plans: Any = SimpleNamespace(planned_files=files, placed_directories=directories)
        planned = end._as_planned(run, plans)
        return planned.files[0].outcome, planned.directories[0].outcome

    assert outcomes(0, 5) == ("unmanaged", "miss")
    assert outcomes(3, 0) == ("miss", "unmanaged")
    assert outcomes(3, 5) == ("miss", "miss")
    bare = end._as_planned(run, None)
    assert (bare.files[0].outcome, bare.directories[0].outcome) == ("unmanaged", "unmanaged")


def test_the_line_says_why_no_mdt_was_given() -> None:
    """Of the first run that asks in vain; later plans do not ask, and say so themselves (`mdt_left`)."""
    of = DirectoryRecord("/d", "/d", "/d", 0, (0,), 0, 0, 1.0)

    def said(*errnos: int) -> str:
        made = tuple(
            msgspec.structs.replace(of, key=f"/d{n}", outcome="refused" if number else "hit", errno=number)
            for n, number in enumerate(errnos)
        )
        run = msgspec.structs.replace(sample(), directories=made)
        placed = SimpleNamespace(mdt_cost=2.0, mdt_cost_bound=1.0)
        plans: Any = SimpleNamespace(step=run.step, mdt_reason="", last_directories=placed)
        return " ".join(end._directories(plans, "", [run]))

    assert said(0) == "directories=1 on_mdts=1 mdt_cost_s=2.000 mdt_bound_s=1.000"
    assert said(1, 1, 5).endswith(f"mdt_refused=3 because={NO_RIGHT!r}")
    assert said(5).endswith("mdt_refused=1 because='Input/output error'")
