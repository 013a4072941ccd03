"""`tarazu change` and the lever of the part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tarazu.changes.change import Change
from tarazu.daemons.changes.agent import Plan
from tarazu.parts.routers.agent import agent_of
from tests.cli.change.conftest import ClientNode


@pytest.fixture
def node(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> ClientNode:
    monkeypatch.setenv("SUDO_USER", "anna")
    return ClientNode(tmp_path, capsys)


def test_many_that_are_alike_are_one_entry_and_no_line_is_wider_than_the_terminal(
    node: ClientNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rules = [f"--dst 10.77.64.{n}@tcp1 --rte 10.77.0.11@tcp" for n in range(64)]
    changes = [Change(lever="routers", target=r, wanted={r: "set"}, why="job 7 " * 20) for r in rules]
    agent = agent_of(node.settings)
    agent.store.directory.mkdir(parents=True, mode=0o700)
    agent.follow(Plan(tuple(changes)), "observe", "")
    lines = node("list")[1].splitlines()
    assert len(lines) < 10 and max(map(len, lines)) <= 80
    assert lines[1].startswith("64 alike  proposed        routers --dst 10.77.64.0@tcp1")
    each = node("list", "--lever", "routers")[1]
    assert all(rule in each.replace("\n" + " " * 26, " ") for rule in rules)


def test_what_an_undo_names_as_the_next_step_is_taken(node: ClientNode) -> None:
    out = node("routers", "--undo")[1]
    assert (named := re.search(r"nothing is set again until `tarazu change (.+)`", out)), out
    assert "held by tarazu change routers --undo" in node("list")[1]
    assert node(*named[1].split())[0] == 0
    assert "nothing new is set" not in node("list")[1]
