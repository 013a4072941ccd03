"""`tarazu prepare`: its command line; and the application comes first, whatever fails around it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tarazu.cli import command
from tarazu.errors import BadInput
from tarazu.sim.testbed import Testbed
from tests.testbed.conftest import bed, memory_directory, shared_bed  # noqa: F401


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("solver -- srun ./a --apply", ("solver", False, [], ["srun", "./a", "--apply"])),
        ("solver --apply --directory d -- ./a -b", ("solver", True, ["d"], ["./a", "-b"])),
        ("--apply solver -- ./a", ("solver", True, [], ["./a"])),
        ("--directory d --apply -- ./a", ("", True, ["d"], ["./a"])),
        ("--undo", ("", False, [], [])),
    ],
)
def test_options_stand_before_or_behind_the_application(words: str, expected: Any) -> None:
    parser, _ = command("prepare")
    found = parser.parse_args(words.split())
    assert (found.application, found.apply, found.directory, found.command) == expected


def prepare(bed: Testbed, tmp_path: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:  # noqa: F811
    home = {"TARAZU_RUN_STATE_DIR": str(tmp_path), "TARAZU_CLIENTD_SOCKET": str(tmp_path / "none"), **more}
    return subprocess.run(
        [sys.executable, "-m", "tarazu", "prepare", "app", *words],
        env=os.environ | bed.environment() | home, cwd=bed.client_mount(), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_without_daemons_the_program_runs_as_it_would_have(bed: Testbed, tmp_path: Path) -> None:  # noqa: F811
    (bed.client_mount() / "out").mkdir()
    done = prepare(bed, tmp_path, "--directory", "out", "--apply", "--", "sh", "-c", "echo ran; exit 7")
    assert (done.returncode, done.stdout) == (7, "ran\n") and "nothing is set" in done.stderr
    assert not (tmp_path / "prepared").exists()


def test_switched_off_it_is_not_there(bed: Testbed, tmp_path: Path) -> None:  # noqa: F811
    done = prepare(bed, tmp_path, "--apply", "--", "sh", "-c", "kill -TERM $$", TARAZU_DISABLE="1")
    assert done.returncode == -15 and "$TARAZU_DISABLE" in done.stderr
    parser, execute = command("prepare")
    with pytest.raises(BadInput, match="a program to run after --"):
        execute(parser.parse_args(["app", "--apply"]))


def test_whatever_is_wrong_with_its_state_the_program_runs_and_its_status_is_handed_on(
    bed: Testbed,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Not only the errors that are expected: what nobody has thought of comes before the application, too."""

    def broken(*_: object, **__: object) -> object:
        raise RuntimeError("nobody has thought of this")

    parser, execute = command("prepare")
    options = parser.parse_args(["app", "--directory", "d", "--apply", "--", "sh", "-c", "echo ran; exit 7"])
    monkeypatch.setattr("tarazu.cli.prepare._prepared", lambda *_: [])
    monkeypatch.setattr("tarazu.prepare.directories.take_back", broken)
    monkeypatch.setattr("tarazu.run.program.restore_environment", lambda: None)
    monkeypatch.setenv("TARAZU_RUN_STATE_DIR", str(tmp_path))
    assert execute(options) == 7
    said = capfd.readouterr()
    assert said.out == "ran\n" and said.err.count("RuntimeError: nobody has thought of this") == 2
    started: list[list[str]] = []

    def become(argv: list[str], by: str) -> int:
        started.append(argv)
        return 127

    monkeypatch.setattr("tarazu.cli.prepare._prepared", broken)
    monkeypatch.setattr("tarazu.run.program.become", become)
    assert execute(options) == 127 and started == [["sh", "-c", "echo ran; exit 7"]]
