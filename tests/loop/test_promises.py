"""What mdsd has promised to a running step shrinks as its files are closed, and ends when its leader dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.sim import demo
from tests.waiting import until

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

CHANGES = {
    "layout": {"min_size": 0, "stripe_count": "2"},
    "predict": {"look_s": 0.2},
    "run": {"alive_s": 30.0},  # a busy machine keeps no leader silent for two of these
}
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


def promised(loop: Loop) -> tuple[int, int]:
    """Allocations that hold promises, and their bytes."""
    mdsd = loop.json("status")["mdsd"]
    osts = mdsd["file_systems"][loop.testbed.fs_name]["osts"]
    return mdsd["requests"]["promises"], sum(o["promised_bytes"] for o in osts)


@contextlib.contextmanager
def running(
    loop: Loop, tmp_path: Path, app: str, source: str = GATED, **extra: str
) -> Iterator[subprocess.Popen[bytes]]:
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
    until(lambda: promised(loop)[0] == 0, lambda: promised(loop))
    command = demo.tarazu_command("run", "--app", app, "--mode", "place", "--", *program, "gated")
    environ = os.environ | loop.testbed.environment(0) | extra
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        assert job.stdout and job.stdin
        assert job.stdout.readline() == b"written\n"
        try:
            yield job
        finally:
            with contextlib.suppress(BrokenPipeError):
                job.stdin.close()
    until(lambda: promised(loop)[0] == 0, lambda: promised(loop))


def test_a_closed_file_is_promised_no_longer_while_the_job_runs_on(loop: Loop, tmp_path: Path) -> None:
    with running(loop, tmp_path, "shrinks") as job:
        assert job.stdin and job.stdout
        whole = promised(loop)[1]
        assert whole >= FILES * SIZE_BYTES
        loop.testbed.refresh()
        assert promised(loop)[1] == whole, "what is still open is still promised"
        for closed in range(1, FILES + 1):
            job.stdin.write(b"\n")
            job.stdin.flush()
            job.stdout.readline()
            left = whole * (FILES - closed) // FILES
            until(lambda left=left: promised(loop)[1] == left, lambda: (promised(loop), loop.log()))
        assert job.poll() is None
    assert job.returncode == 0 and loop.outcomes("shrinks") == {"hit": FILES}


def test_the_promises_of_a_step_that_lives_stand(loop: Loop, tmp_path: Path) -> None:
    progress = lambda: loop.json("status")["clientd"]["progress"]  # noqa: E731
    with running(loop, tmp_path, "lives", TARAZU_RUN_ALIVE_S="1"):
        heard = progress()
        until(lambda: progress() >= heard + 5, loop.log)
        until(lambda: promised(loop)[0] == 1, loop.log)  # a sign of life that came late brings them back


def test_the_promises_of_a_killed_leader_end_after_two_intervals(loop: Loop, tmp_path: Path) -> None:
    with running(loop, tmp_path, "killed", TARAZU_RUN_ALIVE_S="1") as job:
        until(lambda: promised(loop)[0] == 1, loop.log)
        job.send_signal(signal.SIGKILL)
        until(lambda: promised(loop)[0] == 0, lambda: promised(loop))


@pytest.mark.parametrize("program", [["true"], ["/no/such/program"]])
def test_a_step_that_creates_nothing_gives_back_what_was_promised(loop: Loop, program: list[str]) -> None:
    writer = ["dd", "if=/dev/zero", f"of={loop.mount()}/given", "bs=1M", "count=8", "status=none"]
    loop.run(*writer, app="back", mode="observe")
    loop.clear()
    before = loop.json("status")["mdsd"]["requests"]["answers"].get("allocated", 0)
    loop.tarazu("run", "--app", "back", "--mode", "place", "--", *program, env={"TARAZU_RUN_ALIVE_S": "600"})
    assert loop.json("status")["mdsd"]["requests"]["answers"]["allocated"] == before + 1
    until(lambda: promised(loop)[0] == 0, lambda: (promised(loop), loop.log()))


@pytest.mark.long
def test_a_file_that_is_closed_and_opened_again_is_still_promised(loop: Loop, tmp_path: Path) -> None:
    """Its maker has closed it nearly empty; what others are about to write is still to come."""
    with running(loop, tmp_path, "reopens", REOPENED):
        whole = promised(loop)[1]
        assert whole >= FILES * SIZE_BYTES
        loop.testbed.refresh()
        assert promised(loop)[1] == whole
