"""The line of a job says what was made."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import msgspec

from tarazu.run import end
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
        left=Counter({"below layout.min_size": 41, "not forecast": 4}),
        left_osts={},
    )
    step: Any = SimpleNamespace(
        plans=[plan],
        fs_names=[run.step.fs_name],
        job=SimpleNamespace(job_id=""),
        site=SimpleNamespace(seen=""),
        directories=SimpleNamespace(map_here="/nowhere"),
        run_id="r",
        mode="place",
    )
    line = end._summary_line(step, [run], [], "")
    assert "files=42" in line and "left=40 because='below layout.min_size (40), not forecast (4)'" in line
