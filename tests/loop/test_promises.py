"""What mdsd has promised to a running step shrinks as its files are closed, and ends when its leader dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.sim import demo

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

ALIVE_S = 1.0
FILES = 4
SIZE_BYTES = 8 << 20
GATED = """
import pathlib, sys
folder, size = pathlib.Path(sys.argv[1]), int(sys.argv[2])
files = [open(folder / f"part.{n}", "wb") for n in range(4)]
for number, file in enumerate(files):
    file.write(bytes(size))
    if sys.argv[3:]:
        print("written", flush=True)
        sys.stdin.readline()
    file.close()
if sys.argv[3:]:
    print("closed", flush=True)
    sys.stdin.readline()
"""


REOPENED = """
import os, pathlib, sys
folder, size = pathlib.Path(sys.argv[1]), int(sys.argv[2])
paths = [folder / f"part.{n}" for n in range(4)]
for path in paths: path.write_bytes(b"begun")
if os.fork() == 0:  # as one rank makes a file and the others open it
    files = [open(path, "r+b") for path in paths]
    for file in files: file.write(b"x"); file.flush()
    if sys.argv[3:]:
        print("written", flush=True)
        sys.stdin.readline()
    for file in files: file.seek(size - 1); file.write(b"x"); file.close()
    os._exit(0)
os.wait()
"""


@pytest.fixture(scope="module")
def short(loop: Loop) -> Iterator[Loop]:
    changes = {
        "layout": {"min_size": 0, "stripe_count": "2"},
        "predict": {"look_s": 0.2},
        "run": {"alive_s": ALIVE_S},
    }
    loop.configure(changes)
    yield loop


def promised(loop: Loop) -> tuple[int, int]:
    """Allocations that hold promises, and their bytes."""
    mdsd = loop.json("status")["mdsd"]
    osts = mdsd["file_systems"][loop.testbed.fs_name]["osts"]
    return mdsd["requests"]["promises"], sum(o["promised_bytes"] for o in osts)


def until(holds: Callable[[], bool], timeout_s: float, what: Callable[[], object]) -> float:
    """Seconds until it holds."""
    started = time.monotonic()
    while not holds():
        assert time.monotonic() - started < timeout_s, what()
        time.sleep(0.1)
    return time.monotonic() - started


@contextlib.contextmanager
def running(loop: Loop, tmp_path: Path, app: str, source: str = GATED) -> Iterator[subprocess.Popen[bytes]]:
    """A placed step that stands before the close of its first file; all its files are open."""
    (tmp_path / "gated.py").write_text(source)
    folder = loop.mount() / app
    folder.mkdir()
    program = [sys.executable, str(tmp_path / "gated.py"), str(folder), str(SIZE_BYTES)]
    loop.run(*program, app=app, mode="observe")
    loop.testbed.refresh()
    for path in folder.iterdir():
        path.unlink()
    loop.testbed.refresh()
    until(lambda: promised(loop)[0] == 0, 30, lambda: promised(loop))
    command = demo.tarazu_command("run", "--app", app, "--mode", "place", "--", *program, "gated")
    environ = os.environ | loop.testbed.environment(0)
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        assert job.stdout and job.stdin
        assert job.stdout.readline() == b"written\n"
        try:
            yield job
        finally:
            with contextlib.suppress(BrokenPipeError):
                job.stdin.close()
    until(lambda: promised(loop)[0] == 0, 30, lambda: promised(loop))


def test_a_closed_file_is_promised_no_longer_while_the_job_runs_on(short: Loop, tmp_path: Path) -> None:
    loop = short
    with running(loop, tmp_path, "shrinks") as job:
        assert job.stdin and job.stdout
        whole = promised(loop)[1]
        assert whole >= FILES * SIZE_BYTES
        time.sleep(3 * loop.testbed.interval_s + 1)
        assert promised(loop)[1] == whole, "what is still open is still promised"
        for closed in range(1, FILES + 1):
            job.stdin.write(b"\n")
            job.stdin.flush()
            job.stdout.readline()
            left = whole * (FILES - closed) // FILES
            until(lambda left=left: promised(loop)[1] == left, 30, lambda: (promised(loop), loop.log()))
        assert job.poll() is None
    assert job.returncode == 0 and loop.outcomes("shrinks") == {"hit": FILES}


def test_the_promises_of_a_step_that_lives_stand(short: Loop, tmp_path: Path) -> None:
    with running(short, tmp_path, "lives"):
        time.sleep(5 * ALIVE_S)
        assert promised(short)[0] == 1


def test_the_promises_of_a_killed_leader_end_within_two_intervals(short: Loop, tmp_path: Path) -> None:
    with running(short, tmp_path, "killed") as job:
        assert promised(short)[0] == 1
        job.send_signal(signal.SIGKILL)
        until(lambda: promised(short)[0] == 0, 2 * ALIVE_S + 8, lambda: promised(short))


@pytest.mark.parametrize("program", [["true"], ["/no/such/program"]])
def test_a_step_that_creates_nothing_gives_back_what_was_promised(short: Loop, program: list[str]) -> None:
    writer = ["dd", "if=/dev/zero", f"of={short.mount()}/given", "bs=1M", "count=8", "status=none"]
    short.run(*writer, app="back", mode="observe")
    short.clear()
    before = short.json("status")["mdsd"]["requests"]["answers"].get("allocated", 0)
    short.tarazu("run", "--app", "back", "--mode", "place", "--", *program, env={"TARAZU_RUN_ALIVE_S": "600"})
    assert short.json("status")["mdsd"]["requests"]["answers"]["allocated"] == before + 1
    until(lambda: promised(short)[0] == 0, 20, lambda: (promised(short), short.log()))


@pytest.mark.long
def test_a_file_that_is_closed_and_opened_again_is_still_promised(short: Loop, tmp_path: Path) -> None:
    """Its maker has closed it nearly empty; what others are about to write is still to come."""
    with running(short, tmp_path, "reopens", REOPENED):
        whole = promised(short)[1]
        assert whole >= FILES * SIZE_BYTES
        time.sleep(3 * short.testbed.interval_s + 2)
        assert promised(short)[1] == whole
