"""The end of a job waits for nobody: not for a clientd or an mdsd that is stopped, gone or deaf."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.sim import demo
from tarazu.sim.testbed import processes
from tarazu.sim.testbed.daemons import wait_until_ready

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

NOISE_S = 1.5
"""What a busy machine may add to either of two measurements."""


def end_s(
    loop: Loop, name: str, env: dict[str, str] | None = None, at_end: Callable[[], None] | None = None
) -> float:
    """Seconds from the end of a program that has written a file to the end of `tarazu run`."""
    script = f"dd if=/dev/zero of={loop.mount()}/{name} bs=1M count=4 status=none; echo wrote; read _"
    command = demo.tarazu_command("run", "--app", name, "--mode", "place", "--", "sh", "-c", script)
    environ = os.environ | loop.testbed.environment(0) | {"TARAZU_RUN_WAIT_S": "1"} | (env or {})
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as job:
        assert job.stdout and job.stdin and job.stdout.readline() == b"wrote\n"
        if at_end:
            at_end()
        started = time.monotonic()
        job.stdin.write(b"\n")
        job.stdin.close()
        assert job.wait(120) == 0
        took_s = time.monotonic() - started
        assert job.stderr and job.stderr.read() == b""
    return took_s


@contextlib.contextmanager
def stopped(loop: Loop, daemon: str) -> Iterator[Callable[[], None]]:
    """A function that stops a daemon with SIGSTOP; it goes on afterwards."""
    pid = processes.running(loop.testbed.directory, daemon)
    assert pid is not None
    try:
        yield lambda: os.kill(pid, signal.SIGSTOP)
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def usual_s(loop: Loop) -> float:
    """The end of a job that everybody answers, once it is known and planned."""
    end_s(loop, "usual")
    loop.clear()
    return end_s(loop, "usual")


@pytest.mark.parametrize("daemon", ["tarazu-clientd-client1", "tarazu-mdsd"])
@pytest.mark.parametrize("when", ["from the start", "at the end"])
def test_a_stopped_daemon_does_not_delay_the_end(loop: Loop, usual_s: float, daemon: str, when: str) -> None:
    name = f"{daemon[7:10]}{when[-3:]}"
    end_s(loop, name)
    loop.clear()
    with stopped(loop, daemon) as stop:
        if when == "from the start":
            stop()
        took_s = end_s(loop, name, at_end=stop)
    assert took_s < usual_s + 1.0 + NOISE_S, (took_s, usual_s)
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
def test_a_socket_without_a_clientd_delays_neither_start_nor_end(
    loop: Loop, usual_s: float, tmp_path: Path, kind: str
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
        started = time.monotonic()
        took_s = end_s(loop, name, {"TARAZU_CLIENTD_SOCKET": str(path)})
        assert time.monotonic() - started < 1.0 + 6 * NOISE_S + usual_s, "run.wait_s, imports and the job"
    assert took_s < usual_s + 1.0 + NOISE_S, (took_s, usual_s)
    assert len(loop.json("history", "list", name)) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_end_ends_the_wait_for_other_nodes(
    loop: Loop, tmp_path: Path, number: signal.Signals
) -> None:
    """And the status is the program's all the same; without it the site's command has 30 s."""
    asked = tmp_path / "asked"
    gather = tmp_path / "gather"
    gather.write_text(f"#!/bin/sh\n: > {asked}\nexec sleep 60\n")
    gather.chmod(0o755)
    script = f"dd if=/dev/zero of={loop.mount()}/given{number} bs=1M count=1 status=none; exit 7"
    command = demo.tarazu_command("run", "--app", f"given{number}", "--", "sh", "-c", script)
    environ = os.environ | loop.testbed.environment(0) | {"TARAZU_RUN_GATHER": str(gather)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        while not asked.exists():
            time.sleep(0.05)
        sent = time.monotonic()
        job.send_signal(number)
        assert job.wait(60) == 7
        assert time.monotonic() - sent < 15 and job.stdout and job.stdout.read() == b""
    line = (loop.home / "jobs.log").read_text().splitlines()[-1]
    assert "problem='spools of other nodes are lost: gather: given up at a signal'" in line
    assert loop.json("history", "list", f"given{number}")[-1]["files"] == 1


def test_a_report_that_clientd_did_not_take_is_delivered_by_the_next_step(loop: Loop) -> None:
    end_s(loop, "untold")
    loop.clear()
    pid = processes.running(loop.testbed.directory, "tarazu-clientd-client1")
    assert pid is not None
    end_s(loop, "untold", {"TARAZU_RUN_WAIT_S": "20"}, at_end=lambda: os.kill(pid, signal.SIGKILL))
    kept = loop.home / "reports"
    assert len(list(kept.iterdir())) == 1
    loop.testbed.start_daemons()
    wait_until_ready(loop.testbed)
    assert [row["outcome"] for row in loop.rows("untold")] == [""]
    end_s(loop, "another", {"TARAZU_RUN_WAIT_S": "20"})
    deadline = time.monotonic() + 20
    while list(kept.iterdir()) or [row["outcome"] for row in loop.rows("untold")] != ["hit"]:
        assert time.monotonic() < deadline, (list(kept.iterdir()), loop.rows("untold"), loop.log())
        time.sleep(0.2)
