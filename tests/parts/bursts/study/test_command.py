"""`tarazu sim bursts`, as tables."""

from __future__ import annotations

import pytest

from tarazu.cli import main
from tarazu.parts.bursts.study import command as module


def test_statistics_and_node_selection(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHORT_JOBS", 200)
    assert main(["sim", "bursts", "--only", "selection", "--only", "statistics", "--short"]) == 0
    shown = capsys.readouterr().out
    assert "rank-0 I/O, of multi-node jobs" in shown
    assert "tianhe-1a: nodes of jobs, 200 jobs replayed" in shown
    assert "Slurm's own (topology/tree)" in shown
