"""`tarazu change` and the lever of the part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.parts.changes.agent import Plan
from tarazu.parts.changes.model.change import Change
from tarazu.parts.routers.agent import agent_of


class Node:
    """An OSS, by its settings."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.configuration, self.capsys = root / "tarazu.toml", capsys
        self.configuration.write_text(
            f'[state]\ndirectory = "{root}/var"\n[run]\nstop_file = "{root}/stop"\n'
        )

    def __call__(self, *words: str) -> str:
        """`tarazu change WORDS`: what it prints."""
        assert main(["change", *words, "--config", str(self.configuration)]) == 0
        return self.capsys.readouterr().out


@pytest.fixture
def node(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setenv("SUDO_USER", "anna")
    return Node(tmp_path, capsys)


def test_many_that_are_alike_are_one_entry_and_no_line_is_wider_than_the_terminal(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rules = [f"--dst 10.77.64.{n}@tcp1 --rte 10.77.0.11@tcp" for n in range(64)]
    changes = [Change(lever="routers", target=r, wanted={r: "set"}, why="job 7 " * 20) for r in rules]
    agent = agent_of(config.load(str(node.configuration)))
    agent.store.directory.mkdir(parents=True, mode=0o700)
    agent.follow(Plan(tuple(changes)), "observe", "")
    lines = node("list").splitlines()
    assert len(lines) < 10 and max(map(len, lines)) <= 80
    assert lines[1].startswith("64 alike  proposed        routers --dst 10.77.64.0@tcp1")
    each = node("list", "--lever", "routers")
    assert all(rule in each.replace("\n" + " " * 26, " ") for rule in rules)


def test_what_an_undo_names_as_the_next_step_is_taken(node: Node) -> None:
    out = node("routers", "--undo")
    named = re.search(r"nothing is set again until `tarazu change (.+)`", out)
    assert named, out
    assert "held by tarazu change routers --undo" in node("list")
    node(*named[1].split())
    assert "nothing new is set" not in node("list")
