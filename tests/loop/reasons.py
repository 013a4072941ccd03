"""Asks all who tell why files were not placed: `job show`, `job explain`, the job's line, `history report`, clientd."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tarazu.sim import demo
from tarazu.sim.testbed.configuration import configure
from tarazu.units import MIB
from tarazu.wire import local
from tarazu.wire.channel import connect
from tests.loop.conftest import make_loop, patient

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

Changes = Mapping[str, Mapping[str, Any]]
PATIENCE_S = 300.0

JOB = """
import os, sys, time
go, mode, size, *names = sys.argv[1:]
for name in names:
    fd = os.open(name, os.O_CREAT | os.O_WRONLY, int(mode, 8))
    os.pwrite(fd, b"end", int(size) - 3)
    os.close(fd)
if go:
    open(go + ".made", "w")
    while not os.path.exists(go): time.sleep(0.02)
"""
LARGE = 256 * MIB


def last_line(loop: Loop, app: str) -> str:
    """Of the application, in jobs.log."""
    lines = (loop.home / "jobs.log").read_text().splitlines()
    return [line for line in lines if f" app={app} " in line][-1]


def site_of(directory: Path, changes: Changes, **options: Any) -> Iterator[tuple[Loop, Counted]]:
    """A testbed where files from 64 MiB on are placed, whatever it gains; its clientd's count of those that are not."""
    for loop in make_loop(directory, _settings(changes), **{"osss": 2, "osts_per_oss": 2, **options}):
        (loop.testbed.directory / "job.py").write_text(JOB)
        yield loop, Counted(loop)


def _settings(changes: Changes) -> dict[str, Mapping[str, Any]]:
    layout = {"stripe_count": "paper", "striping": "raid0", **changes.get("layout", {})}
    return patient({**changes, "layout": layout})


class Counted:
    """clientd's count of files not placed, by reason, and of plans, by what came of them."""

    def __init__(self, loop: Loop) -> None:
        self._socket = str(loop.testbed.client_root() / "clientd.sock")

    def told(self, loop: Loop, changes: Changes) -> None:
        """mdsd and clientd have taken over these settings in place of those before."""
        configure(loop.testbed, _settings(changes))
        for daemon in ("mdsd", "clientd-client1"):
            log = loop.testbed.directory / "log" / f"tarazu-{daemon}.log"
            before = log.read_text().count("settings read again")
            os.kill(pid_of(loop, daemon), signal.SIGHUP)
            until(lambda: log.read_text().count("settings read again") > before)  # noqa: B023

    def of(self, word: str) -> int:
        return self._status()["not_placed"][word]

    def runs(self, word: str) -> int:
        """Those of which nobody knows the files, too."""
        return self._status()["runs_not_placed"][word]

    def plans(self, status: str) -> int:
        return self._status()["planned"].get(status, 0)

    def _status(self) -> dict[str, Any]:
        with connect(self._socket, PATIENCE_S) as channel:
            answer = channel.ask(local.StatusQuery())
        assert isinstance(answer, local.StatusAnswer)
        return answer.status["clientd"]

    def wait(self, word: str, count: int, *, twice: bool = False) -> None:
        """`twice`: a clientd that stood still may get a report as it was sent, and once more from a later step."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.of(word)) < count:
            assert time.monotonic() < deadline, (word, found, count)
            time.sleep(0.05)
        assert found == count or (twice and found == count + 1), word


def everybody_says(loop: Loop, app: str, why: str, *, files: int, of: int, path: Path) -> None:
    """Of the newest run of an application that created `of` files, and of one of them: this is why. No `files`: nobody
    knows how many.
    """
    line = last_line(loop, app)
    assert f" {f'left={files} ' if files else ''}why=" in line and why in line, line
    shown = loop.tarazu("job", "show", app).stdout
    assert why in shown and (of == 0 or f"{files} of {of} file" in shown or of == 1), shown
    explained = loop.tarazu("job", "explain", path).stdout
    assert why in next((line for line in explained.splitlines() if " not placed: " in line), ""), explained
    reported = loop.tarazu("history", "report", "--since", "1h", "--application", app).stdout
    assert why in reported, reported


def words(loop: Loop, *names: str, size: int = LARGE, mode: str = "644", go: object = "") -> list[str]:
    """The program that makes these files, anew."""
    paths = [loop.mount() / name for name in names]
    for path in paths:
        path.unlink(missing_ok=True)
    return [
        sys.executable,
        str(loop.testbed.directory / "job.py"),
        str(go),
        mode,
        str(size),
        *map(str, paths),
    ]


@contextmanager
def running(loop: Loop, app: str, program: list[str], go: Path, wait_s: float) -> Iterator[None]:
    """The job, once it has made its files; it ends with the block."""
    with _started(loop, app, program, go, wait_s):
        until(lambda: Path(f"{go}.made").exists())
        yield


@contextmanager
def held(loop: Loop, app: str, program: list[str], go: Path, wait_s: float = PATIENCE_S) -> Iterator[None]:
    """The job, before it makes its files; it ends with the block."""
    wait = f"touch {go}.up; while ! [ -e {go} ]; do sleep 0.02; done; exec {shlex.join(program)}"
    with _started(loop, app, ["sh", "-c", wait], go, wait_s):
        until(lambda: Path(f"{go}.up").exists())
        yield


@contextmanager
def _started(loop: Loop, app: str, program: list[str], go: Path, wait_s: float) -> Iterator[None]:
    command = demo.tarazu_command("run", "--app", app, "--mode", "place", "--", *program)
    environ = os.environ | loop.testbed.environment(0) | {"TARAZU_RUN_WAIT_S": str(wait_s)}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield
            go.touch()
            assert (process.wait(PATIENCE_S), process.stderr and process.stderr.read()) == (0, "")
        finally:
            go.touch()  # for what the job has started
            process.kill()


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pid_of(loop: Loop, daemon: str) -> int:
    return int((loop.testbed.directory / "run" / f"tarazu-{daemon}.pid").read_text().split()[0])


def children(pid: int) -> list[int]:
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (thread / "children").read_text().split()]
    return found


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """These processes stand still."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
