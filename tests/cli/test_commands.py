"""The `tarazu` command itself: what it has, and its help."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys

import pytest

from tarazu.cli import COMMANDS, below, commands, groups, main


@pytest.mark.parametrize("name", commands())
def test_every_command_has_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f"usage: tarazu {name} " in shown
    assert all(re.search(rf"^    {verb}\b", shown, re.MULTILINE) for verb in below(name))


def test_the_help_has_each_command_under_one_heading(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = re.findall(r"^  (\S+)  ", capsys.readouterr().out, re.MULTILINE)
    assert listed == [name for names in groups().values() for name in names]
    assert sorted(listed) == sorted(below(""))
    assert len(listed) <= 15


def test_options_of_all_commands_may_stand_before_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--config", "/dev/null", "check"]) == 0
    assert main(["config", "--json", "check"]) == 0
    assert capsys.readouterr().out.startswith("0 mistakes\n{")


@pytest.mark.parametrize("words", [["stutas"], ["job"], ["history", "lsit"]])
def test_what_is_no_command_is_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(words)
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status == 2 and "expected" in (said := capsys.readouterr()).err + "expected" and not said.out


STUDIES = [name for name, (module, _) in COMMANDS.items() if module.startswith("tarazu.sim.")]
PART = "the package tarazu-analysis, or pip install '.[sim,bursts]' in a clone"


@pytest.mark.parametrize("name", STUDIES)
def test_without_the_simulator_its_commands_say_what_is_missing(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [module for module in sys.modules if module.startswith("tarazu.sim.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "tarazu.sim", None)
    assert main(name.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tarazu {name}: expected {PART}; found no tarazu.sim") and error.count("\n") == 1
    assert main(["--help"]) == 0
    assert f"  {name.partition(' ')[0]} " in capsys.readouterr().out


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("words", ["", "--help", "--version", "config", "job --help"])
def test_what_cannot_be_written_is_a_line_and_a_reader_who_has_gone_none(words: str, buffered: str) -> None:
    """Python's own words, and status 120."""
    command = [sys.executable, "-m", "tarazu", *words.split()]
    env = os.environ | {"PYTHONUNBUFFERED": buffered}

    def ended(out: int) -> tuple[int, str]:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, env=env, check=False)
        return done.returncode, done.stderr

    with open("/dev/full", "w") as full:
        status, error = ended(full.fileno())
    assert status in (1, 2) and error.count("\n") <= 1 and "Traceback" not in error
    assert status == 2 or error.endswith(f": {os.strerror(errno.ENOSPC)}\n")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as gone:
        assert ended(gone.fileno()) == (141, "")
