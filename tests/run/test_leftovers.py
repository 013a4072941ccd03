"""What killed leaders left behind goes; what is in use stays, in whatever container and for however many weeks."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tarazu.run import leftovers
from tarazu.run.leftovers import Lease, sweep

HOST = socket.gethostname()
DEAD_PID = 2**22 + 1
"""No kernel gives it to a process; another PID namespace may show any."""

HOLD = """
import sys, time
from pathlib import Path
from tarazu.run.leftovers import Lease
lease = Lease()
lease.take(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@contextmanager
def leader_of(directory: Path, *prefix: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the directory's lease."""
    command = [*prefix, sys.executable, "-c", HOLD, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def step(parent: Path, pid: int = DEAD_PID, host: str = HOST) -> Path:
    directory = parent / f"20260101T000000-{pid}-abcdef-{host}"
    directory.mkdir(parents=True)
    return directory


@pytest.fixture
def a_week_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time
    monkeypatch.setattr(leftovers.time, "time", lambda: now() + 8 * 86400)


def test_a_live_leader_whose_pid_is_not_seen_keeps_its_directory(tmp_path: Path) -> None:
    """In another PID namespace of the same host name the pid in the name is nobody's, or somebody else's."""
    directory = step(tmp_path)
    with leader_of(directory):
        assert sweep(tmp_path) == []
    assert sweep(tmp_path) == [directory] and not directory.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a PID namespace")
def test_a_leader_in_a_container_keeps_its_directory(tmp_path: Path) -> None:
    directory = step(tmp_path, pid=2)
    with leader_of(directory, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"):
        assert sweep(tmp_path) == []
    deadline = time.monotonic() + 300
    while not sweep(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)  # its last process is about to end
    assert not directory.exists()


def test_a_step_of_many_weeks_keeps_its_directory(tmp_path: Path, a_week_later: None) -> None:
    directory = step(tmp_path)
    with leader_of(directory):
        assert sweep(tmp_path) == []


def test_what_a_killed_leader_left_goes_at_once(tmp_path: Path) -> None:
    directory = step(tmp_path, pid=os.getpid())
    with leader_of(directory) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert sweep(tmp_path) == [directory], "although a process of that pid lives"


def test_of_another_node_only_what_is_a_week_old_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There its lease is renewed; here no lock says anything where the file system shares none."""
    directory = step(tmp_path, host="elsewhere")
    lease = Lease()
    monkeypatch.setattr(leftovers, "_boot_id", lambda: b"another kernel\n")
    lease.take(directory)
    lease.release()
    monkeypatch.undo()
    assert sweep(tmp_path) == []
    now = time.time
    monkeypatch.setattr(leftovers.time, "time", lambda: now() + 8 * 86400)
    os.utime(directory / leftovers.LEASE, (now() + 7.9 * 86400,) * 2)
    assert sweep(tmp_path) == [], "renewed an hour ago"
    os.utime(directory / leftovers.LEASE, (now(),) * 2)
    assert sweep(tmp_path) == [directory]


def test_spools_that_a_process_writes_stay_without_any_leader(tmp_path: Path, a_week_later: None) -> None:
    """On the other nodes of a step nobody leads: there its processes' own files say that they live."""
    directory = step(tmp_path, host="elsewhere")
    spool = directory / f"{HOST}.node.tzs"
    spool.write_bytes(bytes(8192))
    source = "import mmap, sys, time; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close()"
    command = [sys.executable, "-c", f"{source}; print('mapped', flush=True); time.sleep(600)", str(spool)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "mapped\n"
        assert sweep(tmp_path) == []
        process.kill()
        process.wait()
    assert sweep(tmp_path) == [directory]


def test_what_is_no_steps_directory_stays(tmp_path: Path, a_week_later: None) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "a-b-c-d").touch()
    (tmp_path / "target").mkdir()
    (tmp_path / "e-f-g-h").symlink_to(tmp_path / "target")
    assert sweep(tmp_path, tmp_path / "missing") == []
    assert {p.name for p in tmp_path.iterdir()} == {"other", "a-b-c-d", "target", "e-f-g-h"}
