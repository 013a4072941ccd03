"""`tarazu sim scenarios` prints what was measured, as a table or JSON."""

from __future__ import annotations

import json

import pytest

from tarazu.cli import main


def test_the_command_prints_and_filters(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "sim",
        "scenarios",
        "--only",
        "fpp-32 pl",
        "--policy",
        "greedy",
        "--policy",
        "tarazu",
        "--seeds",
        "2",
    ]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert [line.split()[:4] for line in shown.out.splitlines()[1:]] == [
        ["ior-fpp-32", "plain", "OST", "cost"],
    ] * 2
    assert "greedy" in shown.err and "1.094" in shown.out
    assert main([*command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in rows] == ["greedy", "tarazu"]
    assert rows[1]["median"] == pytest.approx(rows[1]["bound"])
    assert main(["sim", "scenarios", "--only", "nothing"]) == 2
    assert "expected a scenario among ior-fpp-32" in capsys.readouterr().err
