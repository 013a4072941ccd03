"""`tarazu config`: what it prints can be read back; `check` names each mistake, and what a change needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.part import sections

BAD = """\
[mdsd]
exclude = ["scratch"]
requests = "tcp://127.0.0.1:5770"
[run]
moode = "place"
[allocate]
# nothing
[layout]
pfl_file = "{pfl}"
"""


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    pfl = tmp_path / "pfl.ini"
    pfl.write_text("[a]\nmatch = *\ncomponents = 0-1M:1\n")
    path = tmp_path / "bad.toml"
    path.write_text(BAD.format(pfl=pfl))
    return path


def test_check_names_each_mistake_in_a_line(
    bad: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARAZU_RUN_MOOD", "x")
    monkeypatch.setenv("TARAZU_CONFIG", "/dev/null")
    assert main(["config", "check", str(bad)]) == 1
    lines = capsys.readouterr().out.splitlines()
    for line, place in zip(lines, (5, 3, 2, 9), strict=False):
        assert line.startswith(f"{bad}:{place}: ") and ": expected " in line and ", found " in line, lines
    assert lines[0].partition("expected ")[2].startswith("a setting of [run] (did you mean mode")
    assert f"({bad.parent}/pfl.ini" in lines[3]
    assert "$TARAZU_RUN_MOOD: no setting of [run], passed over" in lines
    assert lines[-1] == "4 mistakes"


def test_check_says_what_changes_need_to_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now, then = tmp_path / "now.toml", tmp_path / "then.toml"
    now.write_text("[mdsd]\nexclude = ['scratch:1']\nrequests = 'tcp://127.0.0.1:1'\n")
    then.write_text("[mdsd]\nexclude = ['scratch:2']\n[run]\nmode = 'place'\n")
    assert main(["config", "check", str(then), "--config", str(now)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "differs from the settings in force, after a restart only: mdsd.requests",
        "differs from the settings in force, taken over on SIGHUP: mdsd.exclude",
        "differs from the settings in force, read for each job step: run.mode",
        "0 mistakes",
    ]
    assert main(["config", "check", "--config", str(then), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["problems"] == [] and told["changes"]["read for each job step"] == ["run.mode"]


def test_what_is_printed_can_be_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tarazu.toml"
    assert main(["config", "default"]) == 0
    path.write_text(capsys.readouterr().out)
    assert config.load(path, {}) == config.Settings()
    path.write_text("[layout]\nmin_size = '3M'\n[run]\nexclude = ['/a', \"/b'c\"]\n")
    assert main(["config", "--config", str(path)]) == 0
    again = tmp_path / "again.toml"
    again.write_text(capsys.readouterr().out)
    before, after = config.load(path, {}), config.load(again, {})
    assert all(getattr(after, section) == getattr(before, section) for section in config.SECTIONS)
    for section, cls in sections().items():
        assert after.part.of(section.removeprefix("part."), cls) == cls()


def test_a_file_is_for_check_only(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["config", "default", "x.toml"])
    assert ended.value.code == 2 and "unrecognized arguments: x.toml" in capsys.readouterr().err
