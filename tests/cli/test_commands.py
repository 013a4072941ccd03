"""The `tarazu` command itself: what it has, its help, and the names that it had before."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from tarazu.cli import COMMANDS, FORMER, GROUPS, below, main


@pytest.mark.parametrize("name", [*COMMANDS, *FORMER])
def test_every_command_has_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f"usage: tarazu {FORMER.get(name, name)} " in shown
    assert all(re.search(rf"^    {verb}\b", shown, re.MULTILINE) for verb in below(FORMER.get(name, name)))


def test_the_help_has_each_command_under_one_heading(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = re.findall(r"^  (\S+)  ", capsys.readouterr().out, re.MULTILINE)
    assert listed == [name for names in GROUPS.values() for name in names] == below("")
    assert len(listed) <= 15


def test_former_names_stand_for_one_command_each() -> None:
    assert set(FORMER.values()) <= set(COMMANDS) and not set(FORMER) & set(below(""))


def test_a_former_name_does_the_same_and_tells_people_the_new_one() -> None:
    tarazu = [sys.executable, "-m", "tarazu"]
    now = subprocess.run([*tarazu, "job", "check-app", "dd"], capture_output=True, check=True)
    before = subprocess.run([*tarazu, "check-app", "dd"], capture_output=True, check=True)
    assert (before.stdout, before.stderr) == (now.stdout, b"")
    master, slave = pty.openpty()
    with open(master, "rb", 0) as seen:
        people = subprocess.run(
            [*tarazu, "check-app", "dd"], stdout=subprocess.PIPE, stderr=slave, check=True
        )
        os.close(slave)
        assert people.stdout == now.stdout
        assert seen.read(1024) == b"tarazu: `check-app` is now `job check-app`\r\n"


def test_options_of_all_commands_may_stand_before_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--config", "/dev/null", "check"]) == 0
    assert main(["config", "--json", "check"]) == 0
    assert capsys.readouterr().out.startswith("0 mistakes\n{")


@pytest.mark.parametrize("words", [["stutas"], ["job"], ["change", "drian"]])
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
    part = PART.replace("sim,bursts", "whatif") if name == "whatif" else PART
    assert error.startswith(f"tarazu {name}: expected {part}; found no tarazu.sim") and error.count("\n") == 1
    assert main(["--help"]) == 0
    assert f"  {name.partition(' ')[0]} " in capsys.readouterr().out


def test_a_verb_that_is_not_installed_says_so_and_the_others_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tarazu.cli.bursts.report", None)
    assert main(["bursts", "report", "--json", "--days", "7"]) == 2
    name = "change bursts report"
    assert capsys.readouterr().err == f"tarazu {name}: expected {PART}; found no tarazu.cli.bursts.report\n"
    assert main(["bursts", "plugin", "library"]) == 0
    assert "return tarazu" in capsys.readouterr().out
