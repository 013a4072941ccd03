"""`tarazu sim bursts`: figure 13 as tables and JSON, and what it does not take."""

from __future__ import annotations

import json

import pytest

from tarazu.cli import main


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


def test_unknown_machines_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "bursts", "--system", "cs20"]) == 2
    error = capsys.readouterr().err
    assert "tianhe-1a or cs19" in error
    assert "cs20" in error
    assert len(error.splitlines()) == 1
