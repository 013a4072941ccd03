"""The table of command lines in the documentation, line by line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tarazu.daemons import jobstep

DOCUMENT = Path(__file__).parents[2] / "docs" / "command-lines.md"


def table() -> list[list[str]]:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    return [[c.strip().strip("`") for c in line.split("|")[1:-1]] for line in lines if line[:3] == "| `"]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.txt").write_text("# two hosts\na slots=3\nb slots=3\n")
    (tmp_path / "programs.conf").write_text("# coupled\n0 ocean.exe 12\n1-3 ice.exe\n")


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_the_table_of_command_lines(row: list[str]) -> None:
    command, settings, application, ranks, nodes, numbers = row
    environ = dict(word.split("=", 1) for word in settings.split())
    if "LSB_MCPU_HOSTS" in environ:
        environ["LSB_MCPU_HOSTS"] = environ["LSB_MCPU_HOSTS"].replace("-", " ")
    step = jobstep.identify(shlex.split(command), environ, fs_name="lustre")
    expected = (application, int(ranks), int(nodes), tuple(float(n) for n in re.findall(r"\d+", numbers)))
    assert (step.application, step.ranks, step.nodes, step.numbers) == expected


def test_the_table_is_long_enough_and_whole() -> None:
    rows = table()
    assert len(rows) >= 60 and all(len(row) == 6 for row in rows)
