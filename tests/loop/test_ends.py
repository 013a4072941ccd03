"""The end of a job waits for nobody: not for a clientd or an mdsd that is stopped, gone or deaf."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tarazu
from tarazu.built import library_path
from tarazu.sim import demo
from tarazu.sim.testbed import processes
from tarazu.sim.testbed.daemons import wait_until_ready
from tests.waiting import LONG_S, until

if TYPE_CHECKING:
    from tests.loop.conftest import Loop


def ended(
    loop: Loop, name: str, env: dict[str, str] | None = None, at_end: Callable[[], None] | None = None
) -> None:
    """A step whose program has written a file; `at_end` is called before it ends. It must end, whoever is silent."""
    script = f"dd if=/dev/zero of={loop.mount()}/{name} bs=1M count=4 status=none; echo wrote; read _"
    command = demo.tarazu_command("run", "--app", name, "--mode", "place", "--", "sh", "-c", script)
    environ = os.environ | loop.testbed.environment(0) | {"TARAZU_RUN_WAIT_S": "1"} | (env or {})
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as job:
        assert job.stdout and job.stdin and job.stdout.readline() == b"wrote\n"
        if at_end:
            at_end()
        job.stdin.write(b"\n")
        job.stdin.close()
        assert job.wait(LONG_S) == 0
        assert job.stderr and job.stderr.read() == b""


NOT_THERE = """
import os, sys
class NotThere:
    def find_spec(self, name, path=None, target=None):
        if not os.path.isdir({package!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path[:] = [NotThere(), *(f for f in sys.meta_path if "Scikit" not in type(f).__name__)]
"""
"""Of an installation below `package`: with it goes its Python, of which nothing is loaded any more either."""


SAYS_WHEN_ALL_IS_LOADED = """
import sys
from tarazu.cli import main
from tarazu.run import leader
load = leader.load
def loaded(step):
    load(step)
    open(sys.argv[1], "w").close()
leader.load = loaded
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("mode", ["observe", "place"])
def test_a_job_over_which_the_package_is_removed_is_remembered(loop: Loop, tmp_path: Path, mode: str) -> None:
    """In mode `place` one that has a plan, which it reports on."""
    package, loaded = tmp_path / "site/tarazu", tmp_path / "loaded"
    left_out = shutil.ignore_patterns("sim", "__pycache__", "_version.py")
    shutil.copytree(Path(tarazu.__file__).parent, package, copy_function=os.symlink, ignore=left_out)
    (package / "lib").mkdir(exist_ok=True)
    for name in ("libtarazu.so", "libtarazu_core.so"):
        (package / "lib" / name).unlink(missing_ok=True)
        (package / "lib" / name).symlink_to(library_path(name))
    (package.parent / "sitecustomize.py").write_text(NOT_THERE.format(package=str(package)))
    name = f"removed-{mode}"
    ended(loop, name)
    loop.clear()
    script = f"dd if=/dev/zero of={loop.mount()}/{name} bs=1M count=4 status=none; read _"
    run = ["run", "--app", name, "--mode", mode, "--", "sh", "-c", script]
    command = [sys.executable, "-c", SAYS_WHEN_ALL_IS_LOADED, str(loaded), *run]
    environ = os.environ | loop.testbed.environment(0) | {"PYTHONPATH": str(package.parent)}
    environ["TARAZU_RUN_WAIT_S"] = str(LONG_S)
    with subprocess.Popen(command, env=environ, cwd=tmp_path, stdin=subprocess.PIPE) as job:
        assert job.stdin
        until(loaded.exists)
        package.rename(tmp_path / "gone")
        job.stdin.write(b"\n")
        job.stdin.close()
        assert job.wait(LONG_S) == 0
    runs = loop.json("history", "list", name)
    outcomes = {"hit" if mode == "place" else "unmanaged": 1}
    assert [run["outcomes"] for run in runs][1:] == [outcomes] and f" {name}: " not in loop.log(), loop.log()
    assert f"app={name} " in (loop.home / "jobs.log").read_text()
    if mode == "place":
        until(lambda: [row["outcome"] for row in loop.rows(name)] == ["hit"], loop.log)


@contextlib.contextmanager
def stopped(loop: Loop, daemon: str) -> Iterator[Callable[[], None]]:
    """A function that stops a daemon with SIGSTOP; it goes on afterwards."""
    pid = processes.running(loop.testbed.directory, daemon)
    assert pid is not None
    try:
        yield lambda: os.kill(pid, signal.SIGSTOP)
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("daemon", ["tarazu-clientd-client1", "tarazu-mdsd"])
@pytest.mark.parametrize("when", ["from the start", "at the end"])
def test_the_end_does_not_wait_for_a_stopped_daemon(loop: Loop, daemon: str, when: str) -> None:
    name = f"{daemon[7:10]}{when[-3:]}"
    ended(loop, name)
    loop.clear()
    with stopped(loop, daemon) as stop:
        if when == "from the start":
            stop()
        ended(loop, name, at_end=stop)
    assert len(loop.json("history", "list", name)) == 2
    wait_until_ready(loop.testbed)


def accept(listener: socket.socket, taken: list[socket.socket]) -> None:
    """Take every connection, and say nothing."""
    with contextlib.suppress(OSError):
        while True:
            taken.append(listener.accept()[0])


@pytest.mark.parametrize(
    "kind", ["nobody listens", "nobody accepts", "a full backlog", "accepts and is silent"]
)
def test_neither_start_nor_end_waits_for_a_socket_without_a_clientd(
    loop: Loop, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "dead.sock"
    name = kind.replace(" ", "_")
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as stack:
        listener.bind(str(path))
        if kind != "nobody listens":
            listener.listen(0 if kind == "a full backlog" else 128)
        for _ in range(2 * (kind == "a full backlog")):
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(str(path))
        if kind == "nobody listens":
            listener.close()
        if kind == "accepts and is silent":
            taken: list[socket.socket] = []
            taker = threading.Thread(target=accept, args=(listener, taken))
            taker.start()
            stack.callback(lambda: [each.close() for each in taken])
            stack.callback(taker.join)
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
        ended(loop, name, {"TARAZU_CLIENTD_SOCKET": str(path)})
    assert len(loop.json("history", "list", name)) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_end_ends_the_wait_for_other_nodes(
    loop: Loop, tmp_path: Path, number: signal.Signals
) -> None:
    """And the status is the program's all the same."""
    asked = tmp_path / "asked"
    gather = tmp_path / "gather"
    gather.write_text(f"#!/bin/sh\n: > {asked}\nexec sleep infinity\n")
    gather.chmod(0o755)
    script = f"dd if=/dev/zero of={loop.mount()}/given{number} bs=1M count=1 status=none; exit 7"
    command = demo.tarazu_command("run", "--app", f"given{number}", "--", "sh", "-c", script)
    environ = os.environ | loop.testbed.environment(0) | {"TARAZU_RUN_GATHER": str(gather)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        until(asked.exists)
        job.send_signal(number)
        assert job.wait(LONG_S) == 7
        assert job.stdout and job.stdout.read() == b""
    line = (loop.home / "jobs.log").read_text().splitlines()[-1]
    assert "problem='spools of other nodes are lost: gather: given up at a signal'" in line
    assert loop.json("history", "list", f"given{number}")[-1]["files"] == 1


def test_a_report_that_clientd_did_not_take_is_delivered_by_the_next_step(loop: Loop) -> None:
    ended(loop, "untold")
    loop.clear()
    pid = processes.running(loop.testbed.directory, "tarazu-clientd-client1")
    assert pid is not None
    ended(loop, "untold", {"TARAZU_RUN_WAIT_S": "20"}, at_end=lambda: os.kill(pid, signal.SIGKILL))
    kept = loop.home / "reports"
    assert len(list(kept.iterdir())) == 1
    loop.testbed.start_daemons()
    wait_until_ready(loop.testbed)
    assert [row["outcome"] for row in loop.rows("untold")] == [""]
    ended(loop, "another", {"TARAZU_RUN_WAIT_S": "20"})
    until(lambda: not list(kept.iterdir()), loop.log)
    until(lambda: [row["outcome"] for row in loop.rows("untold")] == ["hit"], loop.log)
