"""What comes between the steps in which a file is made: a kill, another process, another name, another thread."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from typing import Any

import pytest

from tests.preload.new_files import Placed, both_layouts, put, wanted
from tests.waiting import LONG_S, until

HIT, REFUSED, SKIPPED, RACED, PARTLY = 1, 4, 6, 7, 8

STEPS = ["fsetxattr", "reopen", "dup3"]
MAKE = """
import os
fd = os.open("d/f", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
print(os.pwrite(fd, b"maker", 9 << 20), flush=True)
"""
SECOND = """
import os
fd = os.open("d/f", os.O_RDWR)
print(os.pwrite(fd, b"second", 2 << 20), os.pread(fd, 6, 2 << 20))
"""


def test_a_descriptor_that_another_thread_takes_is_missing_and_the_file_is_not_called_somebody_elses(
    between: Placed,
) -> None:
    """The program would wait for a lock file that it has made itself."""
    put(between, "f")
    source = """
import errno, os
try: os.open("f", os.O_CREAT | os.O_EXCL | os.O_RDWR)
except OSError as error: print(errno.errorcode[error.errno])
"""
    done = between(
        ["python3", "-S", "-c", source], BETWEEN_DENIED="reopen named", BETWEEN_ERRNO=str(errno.EMFILE)
    )
    assert (done.stdout, done.stderr) == ("EMFILE\n", "")


@both_layouts
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_leaves_a_file_that_others_can_write(
    between: Placed, parts: bool, step: str
) -> None:
    put(between, "d/f", parts=parts)
    (between.mount / "d").mkdir()
    assert between(["python3", "-S", "-c", MAKE], BETWEEN_AT=step).returncode == -signal.SIGKILL
    assert os.listdir(between.mount / "d") == ["f"]
    done = between.bare(["python3", "-S", "-c", SECOND])
    assert (done.stdout, done.stderr) == ("6 b'second'\n", "")
    assert step == "fsetxattr" or between.osts("d/f")[0] == wanted(between, parts)[0]


@both_layouts
@pytest.mark.parametrize("preload", [False, True], ids=["without", "with"])
@pytest.mark.parametrize("step", STEPS)
def test_a_second_process_of_the_node_writes_at_any_step(
    between: Placed, parts: bool, step: str, preload: bool
) -> None:
    """Its first write failed with EBADF while the file was open to be written and without a layout."""
    put(between, "d/f", parts=parts)
    (between.mount / "d").mkdir()
    at = between.work / "at"
    environ = between.environ(BETWEEN_AT=step, BETWEEN_FILE=str(at))
    with subprocess.Popen(
        ["python3", "-S", "-c", MAKE], env=environ, cwd=between.mount, text=True, stdout=subprocess.PIPE
    ) as maker:
        until(at.with_suffix(".reached").exists)
        second = (between if preload else between.bare)(["python3", "-S", "-c", SECOND])
        at.with_suffix(".go").touch()
        assert maker.communicate(timeout=LONG_S)[0] == "5\n" and maker.returncode == 0
    assert (second.stdout, second.stderr) == ("6 b'second'\n", "")
    data = (between.mount / "d" / "f").read_bytes()
    assert data[2 << 20 : (2 << 20) + 6] == b"second" and data[9 << 20 :] == b"maker"


@both_layouts
@pytest.mark.parametrize("change", ["unlink", "rename", "link", "another", "directory"])
@pytest.mark.parametrize("step", STEPS)
def test_the_name_is_another_files_between_two_steps(
    between: Placed, parts: bool, step: str, change: str
) -> None:
    """The program has the file that it made, under whatever name, and nothing that was put in its place."""
    put(between, "d/f", parts=parts)
    directory = between.mount / "d"
    directory.mkdir()
    secret = between.mount / "secret"
    secret.write_text("of somebody else")
    at = between.work / "at"
    environ = between.environ(BETWEEN_AT=step, BETWEEN_FILE=str(at))
    source = f"{MAKE}print(os.fstat(fd).st_ino)"
    with subprocess.Popen(
        ["python3", "-S", "-c", source], env=environ, cwd=between.mount, text=True, stdout=subprocess.PIPE
    ) as maker:
        until(at.with_suffix(".reached").exists)
        made = (directory / "f").stat().st_ino
        (directory / "f").rename(directory / "kept")
        if change == "unlink":
            (directory / "kept").unlink()
        elif change == "link":
            (directory / "f").symlink_to(secret)
        elif change == "another":
            (directory / "f").write_text("another")
        elif change == "directory":
            (directory / "f").mkdir()
        at.with_suffix(".go").touch()
        assert maker.communicate(timeout=LONG_S)[0] == f"5\n{made}\n" and maker.returncode == 0
    assert secret.read_text() == "of somebody else"
    if change == "another":
        assert (directory / "f").read_text() == "another"
    if change != "unlink":
        assert (directory / "kept").read_bytes().endswith(b"maker")


@pytest.mark.parametrize("error", ["ENOENT", "EMFILE"])
@pytest.mark.parametrize("change", ["link", "another"])
def test_without_proc_or_a_descriptor_the_name_of_another_file_is_not_opened(
    between: Placed, change: str, error: str
) -> None:
    """What was put in the place of a file made with O_EXCL is somebody else's."""
    put(between, "d/f")
    directory = between.mount / "d"
    directory.mkdir()
    (between.mount / "secret").write_text("of somebody else")
    at = between.work / "at"
    denied = {"BETWEEN_DENIED": "reopen", "BETWEEN_ERRNO": str(getattr(errno, error))}
    environ = between.environ(BETWEEN_AT="reopen", BETWEEN_FILE=str(at), **denied)
    with subprocess.Popen(
        ["python3", "-S", "-c", MAKE], env=environ, cwd=between.mount, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as maker:  # fmt: skip
        until(at.with_suffix(".reached").exists)
        (directory / "f").unlink()
        if change == "link":
            (directory / "f").symlink_to(between.mount / "secret")
        else:
            (directory / "f").write_text("another")
        at.with_suffix(".go").touch()
        output, errors = maker.communicate(timeout=LONG_S)
    assert (output, maker.returncode) == ("", 1) and "Error: [Errno" in errors
    assert (between.mount / "secret").read_text() == "of somebody else"
    assert change == "link" or (directory / "f").read_text() == "another"


def test_no_second_descriptor_reaches_a_program_that_another_thread_starts(between: Placed) -> None:
    """While the first thread stands between the second open and the number that the program is to have."""
    put(between, "f")
    at = between.work / "at"
    source = f"""
import os, subprocess, threading, time
os.environ["BETWEEN_AT"], os.environ["BETWEEN_FILE"] = "dup3", {str(at)!r}
maker = threading.Thread(target=lambda: os.write(os.open("f", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC), b"x"))
maker.start()
while not os.path.exists({str(at) + ".reached"!r}): time.sleep(0.001)
del os.environ["BETWEEN_AT"]
links = [f"/proc/self/fd/{{n}}" for n in os.listdir("/proc/self/fd")]
here = sum(os.readlink(link).endswith("/f") for link in links if os.path.lexists(link))
there = subprocess.run(["ls", "-l", "/proc/self/fd"], close_fds=False, capture_output=True, text=True).stdout
open({str(at) + ".go"!r}, "w").close()
maker.join()
print(here, there.count("mnt/f"), open("f").read())
"""
    done = between(["python3", "-S", "-c", source])
    assert (done.stdout, done.stderr) == ("2 0 x\n", "")


@pytest.mark.parametrize("there", [False, True], ids=["new", "there"])
def test_a_thread_that_is_cancelled_in_an_open_leaves_no_descriptor(
    between: Placed, compiled: Any, there: bool
) -> None:
    """Its own handler closes what it has: the steps of the library in between were ended, too."""
    put(between, "f", parts=True)
    if there:  # without a layout yet
        made = between.bare(
            ["python3", "-S", "-c", "import os; os.open('f', os.O_CREAT | os.O_RDONLY, 0o644)"]
        )
        assert made.stderr == ""
    at = between.work / "at"
    where = {"BETWEEN_AT": "setxattr" if there else "reopen", "BETWEEN_FILE": str(at)}
    done = between([compiled("cancelled.c"), "f", at], **where)
    ended = "in" if there else "behind"  # before the program's own call, or when that has been answered
    assert (done.returncode, done.stdout, done.stderr) == (0, f"cancelled {ended} the open, 0 left\n", "")
    assert there or between.osts("f") == wanted(between, parts=True)


def test_a_thread_with_descriptors_of_its_own_gets_no_other_file(placed: Placed) -> None:
    """The new file was opened again by its number among those of the first thread, where another file had it."""
    placed.behind = ""  # what stands for Lustre knows no such threads
    put(placed, "f")
    source = """
import ctypes, os, threading
CLONE_FILES = 0x400
libc = ctypes.CDLL(None, use_errno=True)
there = os.open("there", os.O_CREAT | os.O_RDWR)
def make():
    assert libc.unshare(CLONE_FILES) == 0, os.strerror(ctypes.get_errno())
    os.close(there)
    fd = os.open("f", os.O_CREAT | os.O_WRONLY)
    print(fd == there, os.write(fd, b"x"))
thread = threading.Thread(target=make)
thread.start(); thread.join()
print(os.path.getsize("f"), os.path.getsize("there"))
"""
    done = placed.python(source)
    assert (done.stdout, done.stderr) == ("True 1\n1 0\n", "")
    assert placed.create("/f").outcome == SKIPPED


def test_other_threads_open_and_close_meanwhile(placed: Placed) -> None:
    """Each has its own file at the number that it was given, and nothing stays open."""
    threads, files = 6, 60
    put(placed, *(f"{t}.{i}" for t in range(threads) for i in range(files)), parts=True)
    source = f"""
import os, threading
def make(t):
    for i in range({files}):
        fd = os.open(f"{{t}}.{{i}}", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        other = os.open("/dev/null", os.O_RDONLY)
        assert os.write(fd, f"{{t}}.{{i}}".encode()) and os.pread(fd, 9, 0) == f"{{t}}.{{i}}".encode()
        os.close(fd); os.close(other)
before = len(os.listdir("/proc/self/fd"))
crowd = [threading.Thread(target=make, args=(t,)) for t in range({threads})]
for thread in crowd: thread.start()
for thread in crowd: thread.join()
print(len(os.listdir("/proc/self/fd")) - before)
"""
    done = placed.python(source)
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert all(
        (placed.mount / f"{t}.{i}").read_text() == f"{t}.{i}" for t in range(threads) for i in range(files)
    )
    assert {c.outcome for c in placed.creates} == {HIT}
