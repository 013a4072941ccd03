"""Runs that are left to Lustre on purpose: the real planner with a real mdsd, and what runs before took."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from tarazu import config, left
from tarazu.daemons import questions
from tarazu.daemons.clientd.planner import Planner
from tarazu.left import NotPlaced
from tarazu.model import JobStep
from tarazu.trace.phases.phase import Phase
from tarazu.trace.records import FileRecord, NotPlacedFiles, RunRecord
from tarazu.trace.runfile import encode_run
from tarazu.units import MIB
from tarazu.wire import local, messages
from tests.daemons.listening import PATIENCE_S

if TYPE_CHECKING:
    from tarazu.wire.requester import Requester
    from tests.daemons.conftest import Site

UID = 1000
STEP = JobStep("lustre", UID, "app", "2")
OSTS = (0, 1, 2, 3, 4)
SIZE = 64 * MIB


@pytest.fixture
def planner(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planner]:
    monkeypatch.setattr(questions, "ANSWER_S", PATIENCE_S)
    monkeypatch.setattr(questions, "ALLOCATION_S", 2 * PATIENCE_S)
    site.stop()
    text = site.config.read_text()
    site.config.write_text(text.replace("least_gain = -1.0", "least_gain = 0.0\ncontrol = 0.125"))
    site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["file_systems"])
    planner = Planner(config.override(config.load(site.config), "clientd", database=str(tmp_path / "i.db")))
    yield planner
    planner.close()


def run(nth: int, seconds: float, word: str = "") -> RunRecord:
    """Of two files that were placed, or not for this reason."""
    files = tuple(FileRecord(f"/{n}", f"/{n}", "/{n}", 0, (0,), 0, n, 0.1, SIZE) for n in range(2))
    phase = Phase(
        0.1, 0.1 + seconds, "write", (0,), 1, 2 * SIZE, 1.0, "POSIX", 2, "contiguous", "unique", 2, 1
    )
    fields = {"phases": (phase,), "placed_bytes": 0 if word else 2 * SIZE}
    not_placed = (NotPlacedFiles(NotPlaced(word), 2, 2 * SIZE),) if word else ()
    return RunRecord(STEP, 100.0 * nth, 50.0, "full", files, 1, 1, not_placed=not_placed, **fields)  # type: ignore[arg-type]


def ask(planner: Planner, folder: Path, runs: Sequence[RunRecord], **more: object) -> local.PlanReply:
    request = local.PlanRequest(STEP, len(runs), OSTS, OSTS, run_id="this run", **more)  # type: ignore[arg-type]
    with contextlib.ExitStack() as stack:
        descriptors = []
        for nth, each in enumerate(runs):
            (path := folder / f"{nth}.run").write_bytes(encode_run(each))
            descriptors.append(stack.enter_context(path.open("rb")).fileno())
        return planner.plan(request, descriptors, UID, lambda *_: local.DirectoryLayouts(b"", {}))


def test_a_run_is_left_to_lustre_because_of_what_runs_took(planner: Planner, tmp_path: Path) -> None:
    placed = [run(nth, 8) for nth in range(3)]
    first = ask(planner, tmp_path, placed[:2])
    assert left.of_text(first.reason) not in (left.CONTROL, left.NOT_FASTER)

    control = ask(planner, tmp_path, placed)
    assert control.status == left.LEFT_TO_LUSTRE and not control.files and control.next_s is None
    assert left.of_plan(control.status, control.reason) == left.CONTROL
    assert control.reason.endswith("so far 3 runs placed, none left")
    assert list(map(left.of_text, control.left)) == [left.CONTROL] and sum(control.left.values()) == 2

    slower = ask(planner, tmp_path, [*placed, run(3, 4, left.CONTROL)])
    assert left.of_plan(slower.status, slower.reason) == left.NOT_FASTER
    assert "placed 3 runs, 16.0 MiB/s; left 1 run, 32.0 MiB/s: -50 %" in slower.reason

    faster = ask(planner, tmp_path, [*placed, run(3, 16, left.CONTROL)])
    assert left.of_text(faster.reason) not in (left.CONTROL, left.NOT_FASTER)

    later = ask(planner, tmp_path, [*placed, run(3, 4, left.CONTROL)], from_s=0.05)
    assert left.of_text(later.reason) not in (left.CONTROL, left.NOT_FASTER)


def test_mdsd_is_told_how_far_its_estimate_was_off(
    planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[messages.AllocationRequest] = []
    allocate = questions.allocate

    def noted(mdsd: Requester, request: messages.AllocationRequest) -> messages.AllocationReply:
        asked.append(request)
        return allocate(mdsd, request)

    monkeypatch.setattr(questions, "allocate", noted)
    now_s = time.time()
    runs = [
        msgspec.structs.replace(run(0, 8), start_s=now_s - 1000 + 100 * nth, expected_s=4.0)
        for nth in range(3)
    ]
    ask(planner, tmp_path, runs, from_s=0.05)
    ask(planner, tmp_path, runs[:2], from_s=0.05)
    assert [of.correction.streams for of in asked] == pytest.approx([2**0.75, 1])
