"""`tarazu sim bursts`: figure 13 as tables and JSON, and what it does not take."""

from __future__ import annotations

import json

import pytest

from tarazu.cli import main
from tarazu.parts.bursts.study import command as module


def test_figure_13_as_tables_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "bursts", "--only", "figure13", "--short"]) == 0
    shown = capsys.readouterr().out
    assert "figure 13a" in shown
    assert "figure 13c" in shown
    assert main(["sim", "bursts", "--only", "figure13", "--short", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["statistics"] == found["remap"] == []
    assert [row["nodes"] for row in found["figure13"]["io"]] == [1, 8, 16]
    assert found["figure13"]["communicating"][0]["break_even"] is None


def test_node_selection_as_tables_and_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHORT_JOBS", 200)
    command = ["sim", "bursts", "--only", "selection", "--short", "--system", "tianhe-1a"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "tianhe-1a: nodes of jobs, 200 jobs replayed" in shown
    assert "Slurm's own (topology/tree)" in shown
    assert main([*command, "--json"]) == 0
    (study,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["selection"]
    assert study["io_nodes"] == 89
    assert [one["chosen"] for one in study["outcomes"]] == [0, 0]  # too few have ended to know an application
    assert study["outcomes"][0]["hops"] is None


def test_unknown_machines_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "bursts", "--system", "cs20"]) == 2
    error = capsys.readouterr().err
    assert "tianhe-1a or cs19" in error
    assert "cs20" in error
    assert len(error.splitlines()) == 1
