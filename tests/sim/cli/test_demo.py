"""`tarazu demo` leaves nothing behind, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.waiting import LONG_S, until


def marked(directory: Path) -> list[int]:
    """Processes of testbeds below it: by their environment, and by their command lines."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            marks = (b"\0" + (process / "environ").read_bytes(), f"\0TESTBED={directory}/")
            named = (b"\0" + (process / "cmdline").read_bytes(), f"\0{directory}/tarazu-demo-")
            if any(text.encode() in where for where, text in (marks, named)):
                pids.append(int(process.name))
        except OSError:
            pass
    return pids


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_testbed_runs_on_after_a_demo_that_is_killed(number: signal.Signals, tmp_path: Path) -> None:
    """Its ten processes ran for ever."""
    command = [sys.executable, "-m", "tarazu", "demo", "--only", "plain", "--output", str(tmp_path / "out")]
    room = Path(tempfile.mkdtemp())  # sockets' names are short
    with subprocess.Popen(command, env=os.environ | {"TMPDIR": str(room)}, stderr=subprocess.DEVNULL) as demo:
        try:
            until(lambda: len(marked(room)) >= 3 or demo.poll() is not None)
            assert demo.poll() is None
        finally:
            demo.send_signal(number)
        assert demo.wait(LONG_S) == -number
    until(lambda: not marked(room) and not list(room.iterdir()), lambda: (marked(room), list(room.iterdir())))


def test_nothing_of_a_killed_test_session_runs_on(tmp_path: Path) -> None:
    """Testbeds and mariadbd did."""
    root = Path(__file__).parents[3]
    code = (
        "import os, signal, subprocess\nfrom tests.leftovers import Session\n"
        "session = Session()\n"
        "child = subprocess.Popen(['sleep', 'infinity'], start_new_session=True)\n"
        "print(child.pid, session.directory, flush=True)\nsignal.pause()"
    )
    environ = {name: value for name, value in os.environ.items() if name != "TARAZU_TEST_SESSION"}
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, env=environ, stdout=subprocess.PIPE, text=True
    ) as session:
        assert session.stdout
        pid, directory = session.stdout.readline().split()
        session.kill()
    until(lambda: not Path("/proc", pid).exists() and not Path(directory).exists())
