"""Placed runs take longer than expected, or not: what the doctor says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.config import Settings, override
from tarazu.doctor import estimate
from tarazu.doctor.node import Node
from tarazu.trace.history import History
from tarazu.units import MIB
from tests.evidence.test_outcomes import a_run


@pytest.mark.parametrize(
    ("expected_s", "runs", "grade", "text"),
    [
        (10.0, 6, "ok", "6 placed runs of yours took 1.00 times as long as expected"),
        (5.0, 6, "warn", "6 placed runs of yours took 2.00 times as long as expected"),
        (20.0, 6, "warn", "6 placed runs of yours took 0.50 times as long as expected"),
        (5.0, 2, "skip", "2 placed runs of yours can be compared, 5 are needed"),
    ],
)
def test_the_doctor_says_when_the_estimate_is_off(
    tmp_path: Path, expected_s: float, runs: int, grade: str, text: str
) -> None:
    history = History(tmp_path / "history")
    for nth in range(runs):
        history.append(a_run(placed=300 * MIB, expected_s=expected_s, start_s=1000.0 + nth))
    settings = override(Settings(), "run", state_dir=str(tmp_path))
    (found,) = estimate.look(Node(settings))
    assert (found.check, found.found) == ("estimate for lustre", text)
    assert found.verdict == grade
