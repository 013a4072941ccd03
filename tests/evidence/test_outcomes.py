"""Which remembered runs are evidence, and what they took."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarazu import left
from tarazu.evidence.outcomes import kind_of, outcome, outcomes
from tarazu.left import NotPlaced
from tarazu.lustre import EOF
from tarazu.model import Component, JobStep, Layout
from tarazu.ost_state import Verdict
from tarazu.then import OstThen, System
from tarazu.trace.history import History
from tarazu.trace.past import read_first_lines
from tarazu.trace.phases.phase import Phase
from tarazu.trace.records import NotPlacedFiles, RunRecord
from tarazu.units import MIB


def wrote(start_s: float, end_s: float, size: int = 100 * MIB) -> Phase:
    return Phase(start_s, end_s, "write", None, 4, size, 1.0, "POSIX", 10, "contiguous", "unique", 4, 1)


def a_run(*, placed: int = 0, word: str = "", left_bytes: int = 0, **more: object) -> RunRecord:
    fields: dict[str, object] = {
        "step": JobStep("lustre", 1000, "app", "7"),
        "start_s": 1000.0,
        "duration_s": 60.0,
        "mode": "full",
        "files": (),
        "phases": (wrote(10, 14), wrote(12, 16), wrote(30, 34)),
        "not_placed": (NotPlacedFiles(NotPlaced(word), 4, left_bytes),) if word else (),
        "placed_bytes": placed,
    }
    return RunRecord(**(fields | more))  # type: ignore[arg-type]


def test_a_wave_lasts_from_its_first_open_to_its_last_close() -> None:
    of = outcome(a_run(placed=300 * MIB, placed_kind="plain", expected_s=8.0, expected_gain=0.5))
    assert of and of.arm == "placed" and of.seconds == pytest.approx(10)
    assert of.bytes_per_s == pytest.approx(30 * MIB)
    assert (of.kind, of.expected_s, of.expected_gain, of.well) == ("plain", 8.0, 0.5, True)


@pytest.mark.parametrize("word", [left.CONTROL, left.NOT_FASTER, left.OBSERVING, left.ADVISING])
def test_a_run_that_was_left_on_purpose(word: str) -> None:
    of = outcome(a_run(word=word, left_bytes=300 * MIB))
    assert of and of.arm == "left"


@pytest.mark.parametrize(
    "run",
    [
        a_run(word=left.NO_GAIN, left_bytes=300 * MIB),
        a_run(word=left.TOO_LATE, left_bytes=200 * MIB, placed=100 * MIB),
        a_run(word=left.OBSERVING, left_bytes=200 * MIB, placed=100 * MIB),
        a_run(placed=300 * MIB, exit_status=1),
        a_run(placed=300 * MIB, phases=()),
        a_run(placed=300 * MIB, phases=(wrote(1, 1.01),)),
    ],
)
def test_what_is_no_evidence(run: RunRecord) -> None:
    assert outcome(run) is None


def test_how_the_system_was() -> None:
    system = System(60, {3: OstThen(verdict=Verdict.SICK)}, usable_osts=15)
    of = outcome(a_run(placed=300 * MIB, system=system))
    assert of and not of.well and of.usable_osts == 15


def test_the_kind_of_most_bytes() -> None:
    plain, striped = (Layout((Component(0, EOF, MIB, stripes),)) for stripes in (1, 4))
    assert kind_of([(plain, 1), (striped, 5), (plain, 3)]) == "striped"
    assert kind_of([]) == ""


def test_many_runs_are_read_by_their_first_lines(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    runs = [a_run(placed=(n + 1) * MIB, start_s=1000.0 + n, expected_gain=0.25) for n in range(5)]
    paths = [history.append(run) for run in runs]
    paths[1].write_text("nonsense")
    descriptors = [os.open(path, os.O_RDONLY) for path in paths]
    try:
        assert [r.start_s for r in read_first_lines(descriptors, 4)] == [1002.0, 1003.0, 1004.0]
        assert len(outcomes(read_first_lines(descriptors, 100))) == 4
        assert len(read_first_lines(descriptors, 100, most_bytes=1)) == 1
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
