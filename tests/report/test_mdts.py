"""Directories in the report: what was placed, left to Lustre, refused, and what none had expected."""

from __future__ import annotations

import msgspec

from tarazu.config import Weights
from tarazu.model import JobStep, Mdt, SystemView
from tarazu.report.mdts import of_run, summed
from tarazu.trace.records import DirectoryRecord, RunRecord

STEP = JobStep("lustre", 0, "app", "7")
VIEW = SystemView(
    "lustre", 0.0, (), mdts=tuple(Mdt(i, "mds", 1 << 40, 1 << 40, 1 << 30, 1 << 30) for i in range(2))
)


def made(n: int, outcome: str = "unmanaged", mdt: int = -1, errno: int = 0) -> DirectoryRecord:
    key = f"/out/d{n}"
    return DirectoryRecord(
        key, key, "/out/d#", 0, (0,), 0, n, 1.0, 100, outcome=outcome, mdt=mdt, errno=errno
    )


def run(*directories: DirectoryRecord) -> RunRecord:
    return RunRecord(STEP, 1.0, 1.0, "full", (), directories=directories)


def test_what_was_expected_and_left_to_lustre_is_no_miss() -> None:
    before = run(*map(made, range(4)))
    later = run(
        made(0, "hit", 1),
        made(1, "miss", 0),
        made(2, "miss", 0),
        made(3, "refused", errno=1),
        made(9, "miss"),
    )
    found = of_run(later, [before], VIEW, Weights())
    assert found is not None
    assert (found.directories, found.found, found.placed, found.left, found.refused) == (5, 4, 1, 2, 1)
    assert of_run(before, [], VIEW, Weights()) is not None
    first = of_run(before, [], VIEW, Weights())
    assert first is not None and (first.found, first.left) == (0, 0)
    (one,) = summed([first, found])
    assert (one.runs, one.placed, one.left, one.refused) == (2, 1, 2, 1)
    assert msgspec.to_builtins(one)["left"] == 2


def test_no_directories_are_no_row() -> None:
    assert of_run(run(), [], VIEW, Weights()) is None
    assert of_run(run(msgspec.structs.replace(made(0), existed=True)), [], VIEW, Weights()) is None
