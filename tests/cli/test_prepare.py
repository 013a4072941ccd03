"""`tarazu change prepare`: its command line; and the application comes first, whatever fails around it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.cli import command
from tarazu.cli import prepare as cli_prepare
from tarazu.errors import BadInput
from tarazu.model import Ost, SystemView
from tarazu.sim.testbed import Testbed
from tarazu.sim.testbed.library import library_directory
from tarazu.wire import local
from tarazu.wire.channel import Channel
from tarazu.wire.messages import ViewReply
from tests.testbed.conftest import bed, memory_directory, shared_bed  # noqa: F401

STATIC = library_directory() / "testbed" / "iorlike-static"


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
    parser = command("change prepare")
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
    parser = command("change prepare")
    with pytest.raises(BadInput, match="a program to run after --"):
        cli_prepare.execute(parser.parse_args(["app", "--apply"]))


def test_whatever_is_wrong_with_its_state_the_program_runs_and_its_status_is_handed_on(
    bed: Testbed,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Not only the errors that are expected: what nobody has thought of comes before the application, too."""

    def broken(*_: object, **__: object) -> object:
        raise RuntimeError("nobody has thought of this")

    parser = command("change prepare")
    options = parser.parse_args(["app", "--directory", "d", "--apply", "--", "sh", "-c", "echo ran; exit 7"])
    monkeypatch.setattr("tarazu.cli.prepare._prepared", lambda *_: [])
    monkeypatch.setattr("tarazu.daemons.changes.engine.Engine.leave", broken)
    (tmp_path / "prepared").mkdir()
    monkeypatch.setattr("tarazu.run.program.restore_environment", lambda: None)
    monkeypatch.setenv("TARAZU_RUN_STATE_DIR", str(tmp_path))
    assert cli_prepare.execute(options) == 7
    said = capfd.readouterr()
    assert said.out == "ran\n" and said.err.count("RuntimeError: nobody has thought of this") == 2
    started: list[list[str]] = []

    def become(argv: list[str], by: str) -> int:
        started.append(argv)
        return 127

    monkeypatch.setattr("tarazu.cli.prepare._prepared", broken)
    monkeypatch.setattr("tarazu.run.program.become", become)
    assert cli_prepare.execute(options) == 127 and started == [["sh", "-c", "echo ran; exit 7"]]


GB = 10**9


def _views() -> dict[str, SystemView]:
    """mdsd's: of two file systems; in the testbed's OST 3 is sick and OST 6 full, of the other's all but these two."""
    space = 100 * GB, 90 * GB, 90 * GB
    well = [Ost(i, "oss1", *space, relative_speed=1.0) for i in range(8)]
    sick = [Ost(i, "oss1", *space, relative_speed=0.05) for i in range(8)]
    full = Ost(6, "oss1", 100 * GB, 0, 0, relative_speed=1.0)
    here = (*well[:3], sick[3], *well[4:6], full, well[7])
    there = (*sick[:3], well[3], *sick[4:6], well[6], sick[7])
    views = {"flash": there, "lustre": here}
    return {fs_name: SystemView(fs_name, 0.0, osts) for fs_name, osts in views.items()}


@contextlib.contextmanager
def clientd(path: Path) -> Iterator[None]:
    """Says what mdsd knows, to all who ask, and nothing else."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with Channel(listener.accept()[0]) as channel:
                        query, views = channel.receive(), _views()
                        assert isinstance(query, local.ViewQuery)
                        view = views.get(query.fs_name)
                        channel.send(ViewReply("1", view, fs_names=tuple(views), stopped=""))

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.skipif(not STATIC.exists(), reason="needs a static libc")
def test_a_program_that_escapes_the_library_avoids_a_sick_and_a_full_ost_of_its_file_system(
    bed: Testbed,  # noqa: F811
    tmp_path: Path,
) -> None:
    """With real daemons: tests/loop/test_without_preload.py, which takes longer."""
    out = bed.client_mount() / "out"
    out.mkdir()
    with clientd(tmp_path / "socket"):
        done = prepare(
            bed, tmp_path, "--directory", "out", "--apply", "--",
            str(STATIC), "-F", "-n", "12", "-b", "4m", "-t", "1m", "-o", f"{out}/below/f",
            TARAZU_CLIENTD_SOCKET=str(tmp_path / "socket"),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    used = {i for n in range(12) for i in bed.layout(f"out/below/f.{n}").osts[0]}
    assert used == {0, 1, 2}, done.stderr
    directories = [bed.mount / "out", bed.mount / "out" / "below"]
    assert [bed.mds.layout_blob(each) for each in directories] == [None, None]
    assert not list(tmp_path.glob("prepared/changes.json"))
