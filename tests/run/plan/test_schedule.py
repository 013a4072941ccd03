"""On which file systems an application is planned: those that its newest steps wrote to."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tarazu.model import JobStep
from tarazu.run.before import RECENT_STEPS, used_lately
from tarazu.trace.history import History
from tarazu.trace.records import RunRecord

RUN = RunRecord(JobStep("lustre", 1, "app", ""), 0.0, 1.0, "full", ())
MOUNTED = ["c", "b", "a"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("", []),
        ("a", ["a"]),
        ("a a a b", ["b", "a"]),
        ("ab", ["b", "a"]),
        ("ab ab ab", ["b", "a"]),
        ("a b b", ["b", "a"]),
        ("a b b b", ["b"]),
        ("a b a b a b", ["b", "a"]),
        ("a a a x", ["a"]),
    ],
)
def test_the_newest_steps_decide(tmp_path: Path, steps: str, expected: list[str]) -> None:
    """Each word is a step, each letter a file system that it wrote to; x is not mounted any more."""
    history = History(tmp_path)
    for number, used in enumerate(steps.split()):
        for fs_name in used:
            step = msgspec.structs.replace(RUN.step, fs_name=fs_name)
            history.append(msgspec.structs.replace(RUN, step=step, start_s=1e9 + number))
    assert RECENT_STEPS == 3
    assert used_lately(history, MOUNTED, "app") == expected
    assert used_lately(history, MOUNTED, "other") == []
