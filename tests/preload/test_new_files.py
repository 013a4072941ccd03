"""A placed file is made for reading, gets its layout, and is opened again: what the program, its neighbours, and those
who come in between see of that."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.preload.conftest import LIBRARIES
from tests.waiting import LONG_S, until
from tests.within_reach import interpreter

Placed = Any
HIT, REFUSED, SKIPPED, RACED, PARTLY = 1, 4, 6, 7, 8

both_layouts = pytest.mark.parametrize("parts", [False, True], ids=["plain", "progressive"])


def put(placed: Placed, *names: str, parts: bool = False, shared: bool = False) -> None:
    kept: dict[str, Any] = {"shared": shared}
    lists = placed.three_lists if parts else ((3, 1, 5),)
    if parts:
        kept["layout"] = placed.three_parts
    placed.map(*(placed.row(f"/{name}", *lists, row_id=i, **kept) for i, name in enumerate(names)))


def wanted(placed: Placed, parts: bool) -> list[list[int]]:
    return [list(part) for part in placed.three_lists] if parts else [[3, 1, 5]]


def let_others_in(placed: Placed) -> None:
    """An ordinary user reads the map, too."""
    placed.mount.chmod(0o755)
    for directory in (placed.work, placed.map_directory, *list(placed.work.parents)[:3]):
        directory.chmod(directory.stat().st_mode | 0o055)


def empty(directory: Path) -> None:
    for entry in directory.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


@pytest.fixture
def between(placed: Placed, compiled: Any) -> Placed:
    """The library that answers for calls of libtarazu.so alone stands behind it."""
    library = compiled("between.c", "-shared", "-fPIC", "-ldl")
    placed.behind = f"{shutil.copy2(library, LIBRARIES / 'between.so')} {placed.behind}"
    return placed


FLAGS = "O_EXCL O_CLOEXEC O_TRUNC O_APPEND O_NOFOLLOW O_SYNC O_NOATIME O_ASYNC O_NONBLOCK O_DSYNC O_NOCTTY".split()


@both_layouts
@pytest.mark.parametrize("access", ["O_RDWR", "O_WRONLY", "O_RDONLY"])
def test_the_program_has_the_descriptor_that_it_asked_for(placed: Placed, parts: bool, access: str) -> None:
    put(placed, *(f"a/{flag}" for flag in FLAGS), parts=parts)
    source = f"""
import fcntl, os
os.mkdir("a")
for name in {FLAGS}:
    try:
        fd = os.open("a/" + name, os.O_CREAT | os.{access} | getattr(os, name, 0o20000), 0o640)
    except OSError as error:
        print(name, error.errno)
        continue
    st = os.fstat(fd)
    print(name, fd, os.readlink(f"/proc/self/fd/{{fd}}"), oct(st.st_mode), st.st_nlink, st.st_size)
    print(fcntl.fcntl(fd, fcntl.F_GETFL), os.get_inheritable(fd), len(os.listdir("/proc/self/fd")))
    if "{access}" != "O_RDONLY": print(os.pwrite(fd, b"third", 9 << 20))
print(sorted(os.listdir("a")))
"""
    bare = placed.bare(["python3", "-S", "-c", source])
    shutil.rmtree(placed.mount / "a")
    done = placed(["python3", "-S", "-c", source])
    assert (done.stdout, done.stderr) == (bare.stdout, bare.stderr)
    appended = {"a/O_APPEND"} if not parts else set()
    for name in (f"a/{flag}" for flag in FLAGS):
        assert placed.create(f"/{name}").outcome == HIT
        if access != "O_RDONLY" or not parts:
            assert placed.osts(name) == wanted(placed, parts) or name in appended


def test_direct_io_stays_asked_for(placed: Placed) -> None:
    """Where the file system has it."""
    put(placed, "f")
    source = """
import fcntl, os
try: fd = os.open("f", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
except OSError as error: print(error.errno, os.path.exists("f"))
else: print(fd, fcntl.fcntl(fd, fcntl.F_GETFL))
"""
    bare = placed.bare(["python3", "-c", source])
    empty(placed.mount)
    assert placed.python(source).stdout == bare.stdout


def test_a_name_that_exists_is_opened_or_refused_as_without(placed: Placed) -> None:
    """Regular files, links to nowhere and elsewhere, directories, trailing slashes."""
    put(placed, "f", "link", "dangling", "target", "d", "new/")
    source = """
import os
def attempt(name, flags):
    try:
        fd = os.open(name, flags | os.O_CREAT | os.O_WRONLY, 0o644)
    except OSError as error:
        return error.errno
    return os.write(fd, b"data"), os.fstat(fd).st_nlink, os.close(fd)
os.close(os.open("f", os.O_CREAT | os.O_WRONLY)); os.mkdir("d")
os.symlink("f", "link"); os.symlink("target", "dangling")
for flags in (os.O_EXCL, 0, os.O_NOFOLLOW, os.O_APPEND):
    print([attempt(name, flags) for name in ("f", "link", "dangling", "d", "new/", "d/../f", "")])
print(sorted(os.listdir(".")), os.readlink("dangling"))
"""
    bare = placed.bare(["python3", "-c", source])
    empty(placed.mount)
    done = placed.python(source)
    assert (done.stdout, done.stderr) == (bare.stdout, bare.stderr)


def test_a_directory_of_a_planned_name_keeps_its_default_layout(placed: Placed) -> None:
    """The call that gives a file its layout gives a directory a default."""
    put(placed, "d")
    (placed.mount / "d").mkdir()
    source = (
        "import os\ntry: os.open('d', os.O_CREAT | os.O_WRONLY)\nexcept IsADirectoryError: print('it is')"
    )
    assert placed.python(source).stdout == "it is\n"
    assert placed.bed.mds.layout_blob(placed.mount / "d") is None


def test_a_file_without_layout_that_is_there_gets_the_planned_one(placed: Placed) -> None:
    """As its maker leaves it for a moment; by a name, a directory's descriptor and a link."""
    names = [f"d/{i}" for i in range(3)]
    put(placed, *names, "d/link", parts=True)
    (placed.mount / "d").mkdir()
    (placed.mount / "d" / "link").symlink_to("2")
    source = """
import os
for i in range(3): os.close(os.open(f"d/{i}", os.O_CREAT | os.O_RDONLY, 0o644))
"""
    assert placed.bare(["python3", "-c", source]).stderr == ""
    assert all(placed.bed.mds.layout_blob(placed.mount / name) is None for name in names)
    source = """
import os
os.write(os.open("d/0", os.O_CREAT | os.O_WRONLY), b"x")
os.write(os.open("1", os.O_CREAT | os.O_WRONLY, dir_fd=os.open("d", os.O_RDONLY)), b"x")
os.write(os.open("d/link", os.O_CREAT | os.O_WRONLY), b"x")
"""
    assert placed.python(source).stderr == ""
    assert [placed.osts(name) for name in names] == 3 * [wanted(placed, parts=True)]


@both_layouts
def test_access_lists_and_groups_of_the_directory_are_inherited(placed: Placed, parts: bool) -> None:
    if not shutil.which("setfacl") or os.geteuid() != 0:
        pytest.skip("needs setfacl and root")
    put(placed, "d/f", parts=parts)
    seen = []
    for run in (placed.bare, placed):
        shutil.rmtree(placed.mount / "d", ignore_errors=True)
        (placed.mount / "d").mkdir()
        os.chown(placed.mount / "d", 0, 1234)
        (placed.mount / "d").chmod(0o2755)
        subprocess.run(["setfacl", "-d", "-m", "u:65534:rw,g::r", placed.mount / "d"], check=True)
        assert (
            run(["python3", "-c", "import os; os.open('d/f', os.O_CREAT | os.O_RDWR, 0o666)"]).returncode == 0
        )
        seen.append(look(placed, "d/f"))
    assert seen[0] == seen[1] and placed.osts("d/f") == wanted(placed, parts)


def look(placed: Placed, name: str) -> tuple[Any, ...]:
    st = (placed.mount / name).stat()
    acl = subprocess.run(["getfacl", "-cn", name], cwd=placed.mount, capture_output=True, check=True).stdout
    return st.st_mode, st.st_uid, st.st_gid, st.st_nlink, st.st_size, acl


@both_layouts
@pytest.mark.parametrize("access", ["O_RDWR", "O_WRONLY"])
@pytest.mark.parametrize("taken", ["r", "-", "w"])
def test_an_access_list_that_takes_the_owners_rights_away(
    placed: Placed, parts: bool, access: str, taken: str
) -> None:
    """Who makes a file may do with this descriptor what it asked for, whatever the file's mode then is."""
    if not shutil.which("setfacl") or os.geteuid() != 0:
        pytest.skip("needs setfacl, and root, to become somebody else")
    put(placed, "d/f", parts=parts)
    let_others_in(placed)
    source = f"""
import fcntl, os
fd = os.open("d/f", os.O_CREAT | os.O_EXCL | os.{access}, 0o644)
print(fd, fcntl.fcntl(fd, fcntl.F_GETFL), os.write(fd, b"x"), os.pwrite(fd, b"third", 9 << 20))
if "{access}" == "O_RDWR": print(os.pread(fd, 1, 0))
"""
    seen = []
    for preload in (placed.behind, f"{placed.library} {placed.behind}"):
        shutil.rmtree(placed.mount / "d", ignore_errors=True)
        (placed.mount / "d").mkdir()
        (placed.mount / "d").chmod(0o777)
        subprocess.run(["setfacl", "-d", "-m", f"u::{taken},g::r,o::-", placed.mount / "d"], check=True)
        environ = placed.environ(TARAZU_SPOOL="off", LD_PRELOAD=preload)
        done = subprocess.run(
            [interpreter(65534), "-c", source], env=environ, cwd=placed.mount, user=65534, group=65534,
            extra_groups=[], umask=0o022, capture_output=True, text=True, check=False,
        )  # fmt: skip
        seen.append((done.returncode, done.stdout, done.stderr, look(placed, "d/f")))
    assert seen[0] == seen[1] and seen[0][0] == 0
    assert (placed.osts("d/f") == wanted(placed, parts)) == (taken == "w")


@both_layouts
def test_a_mode_that_takes_reading_away_is_left_to_lustre(placed: Placed, parts: bool) -> None:
    put(placed, "f", "g", parts=parts)
    source = """
import os
for name, access in (("f", os.O_RDWR), ("g", os.O_WRONLY)):
    print(os.write(os.open(name, os.O_CREAT | access, 0o200), b"x"))
"""
    assert placed.python(source).stdout == "1\n1\n"
    assert (placed.create("/f").outcome, placed.create("/g").outcome) == (SKIPPED, HIT)


@both_layouts
@pytest.mark.parametrize("error", ["EMFILE", "ENFILE"])
@pytest.mark.parametrize("flags", ["0", "os.O_EXCL", "os.O_CLOEXEC", "os.O_EXCL | os.O_APPEND"])
def test_the_last_descriptor_of_a_process(between: Placed, parts: bool, flags: str, error: str) -> None:
    """A second one is not to be had: the first is given up before. (The emulated Lustre needs some of its own.)"""
    put(between, "f", parts=parts)
    source = f"""
import fcntl, os
fd = os.open("f", os.O_CREAT | os.O_RDWR | {flags}, 0o640)
print(fd, fcntl.fcntl(fd, fcntl.F_GETFL), os.get_inheritable(fd), os.pwrite(fd, b"x", 9 << 20))
print(oct(os.fstat(fd).st_mode), os.fstat(fd).st_size, len(os.listdir("/proc/self/fd")))
"""
    bare = between.bare(["python3", "-c", source])
    empty(between.mount)
    done = between(
        ["python3", "-c", source], BETWEEN_DENIED="reopen", BETWEEN_ERRNO=str(getattr(errno, error))
    )
    assert (done.stdout, done.stderr) == (bare.stdout, bare.stderr) and done.returncode == 0
    assert between.osts("f") == wanted(between, parts)


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
def test_without_proc_the_file_is_opened_by_its_name(between: Placed, parts: bool) -> None:
    put(between, "f", "g", parts=parts)
    source = """
import os
for name, flags in (("f", os.O_EXCL), ("g", 0)):
    fd = os.open(name, os.O_CREAT | os.O_RDWR | flags)
    print(fd, os.pwrite(fd, b"x", 9 << 20), len(os.listdir("/proc/self/fd")))
"""
    bare = between.bare(["python3", "-c", source])
    empty(between.mount)
    done = between(["python3", "-c", source], BETWEEN_DENIED="reopen", BETWEEN_ERRNO=str(errno.ENOENT))
    assert (done.stdout, done.stderr) == (bare.stdout, bare.stderr)
    assert between.osts("f") == between.osts("g") == wanted(between, parts)


CALLS = ("fsetxattr", "setxattr", "fgetxattr", "getxattr", "ioctl")
DENIALS = (
    "EPERM",
    "EACCES",
    "ENOSYS",
    "EOPNOTSUPP",
    "EINVAL",
    "EIO",
    "ENOTTY",
    "ENODATA",
    "EBADF",
    "ENOSPC",
    "EROFS",
)
DENIALS += ("EINTR", "EDQUOT")  # fmt: skip


@pytest.mark.parametrize("error", DENIALS)
def test_layout_calls_that_are_denied_leave_the_file_as_lustre_makes_it(between: Placed, error: str) -> None:
    """By a list of system calls or a security module: alone and together, for plain, progressive and shared files, new
    ones, and such as another process has just made."""
    some = [" ".join(c) for n in range(1, len(CALLS) + 1) for c in itertools.combinations(CALLS, n)]
    rows, sources = [], []
    for i, calls in enumerate(some):
        for kind in ("plain", "progressive", "shared"):
            name = f"{i}.{kind}"
            lists = between.three_lists if kind == "progressive" else ((3, 1, 5),)
            layout = between.three_parts if kind == "progressive" else None
            rows += [
                between.row(
                    f"/{how}.{name}", *lists, layout=layout, shared=kind == "shared", row_id=len(rows)
                )
                for how in ("new", "there")
            ]
            sources.append((calls, name))
    between.map(*rows)
    source = f"""
import os
for calls, name in {sources}:
    os.close(os.open("there." + name, os.O_CREAT | os.O_RDONLY, 0o644))
    os.environ["BETWEEN_DENIED"] = calls
    for name in ("new." + name, "there." + name):
        fd = os.open(name, os.O_CREAT | os.O_RDWR, 0o644)
        assert os.pwrite(fd, name.encode(), 9 << 20) and os.pread(fd, 99, 9 << 20) == name.encode()
        os.close(fd)
    os.environ["BETWEEN_DENIED"] = ""
"""
    done = between(["python3", "-S", "-c", source], BETWEEN_ERRNO=str(getattr(errno, error)))
    assert (done.returncode, done.stderr) == (0, "")
    for _, name in sources:
        for how in ("new", "there"):
            assert between.osts(f"{how}.{name}")[0] != [], (how, name)
            assert (between.mount / f"{how}.{name}").stat().st_size == (9 << 20) + len(f"{how}.{name}")


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


def test_record_locks_on_a_file_that_is_there_stay(placed: Placed) -> None:
    """A close of any descriptor of the file, also of one of ours, would drop those of the process."""
    put(placed, "f", "g", parts=True)
    source = """
import fcntl, os, struct
OFD_SETLK = 37
for name, maker in (("f", os.O_WRONLY), ("g", os.O_RDONLY)):
    first = os.open(name, os.O_CREAT | maker, 0o644)
    fd = os.open(name, os.O_RDWR | (os.O_CREAT if maker == os.O_WRONLY else 0))
    fcntl.lockf(fd, fcntl.LOCK_EX, 10, 0)
    fcntl.fcntl(fd, OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 100, 10, 0))
    again = os.open(name, os.O_CREAT | os.O_WRONLY)
    if os.fork() == 0:
        other = os.open(name, os.O_RDWR)
        for at in (0, 100):
            try: fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, at)
            except OSError: continue
            os._exit(1)
        os._exit(0)
    print(os.wait()[1])
"""
    done = placed.python(source)
    assert (done.stdout, done.stderr) == ("0\n0\n", "")


OPENS = {"2", "56", "257"}
"""Numbers of open and openat, on x86_64 and aarch64."""


def test_an_alarm_ends_the_open_of_a_fifo(placed: Placed) -> None:
    """The open was made a second time, which nothing ended."""
    put(placed, "fifo", parts=True)
    os.mkfifo(placed.mount / "fifo")
    source = """
import ctypes, errno, os, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, True)
print("ready", flush=True)
print(libc.open(b"fifo", os.O_WRONLY | os.O_CREAT, 0o644), errno.errorcode[ctypes.get_errno()])
"""
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        env=placed.environ(),
        cwd=placed.mount,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout and process.stdout.readline() == "ready\n"
        blocked = Path(f"/proc/{process.pid}/syscall")
        until(lambda: waits_in_open(blocked))
        process.send_signal(signal.SIGALRM)
        assert process.communicate(timeout=LONG_S)[0] == "-1 EINTR\n"
    finally:
        process.kill()
        process.wait()


def waits_in_open(blocked: Path) -> bool:
    """Twice at the same place: not on its way through the opens of the library's own."""
    first = blocked.read_text()
    time.sleep(0.05)
    return first == blocked.read_text() and first.split()[0] in OPENS and "S" in stat_of(blocked.parent)


def stat_of(process: Path) -> str:
    return (process / "stat").read_text().rpartition(")")[2].split()[0]


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


def test_a_descriptor_for_neither_reading_nor_writing(placed: Placed) -> None:
    """Access 3, for ioctl alone, of a file whose owner may only write: the second open needs both rights."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    put(placed, "d/f", "d/g")
    let_others_in(placed)
    (placed.mount / "d").mkdir()
    (placed.mount / "d").chmod(0o777)
    source = (
        "import os; print([os.open('d/' + n, os.O_CREAT | 3, m) for n, m in (('f', 0o200), ('g', 0o600))])"
    )
    done = subprocess.run(
        [interpreter(65534), "-c", source], env=placed.environ(TARAZU_SPOOL="off"), cwd=placed.mount, user=65534,
        group=65534, extra_groups=[], umask=0o022, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[3, 4]\n", "")
    assert placed.osts("d/g") == [[3, 1, 5]] != placed.osts("d/f")


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


def test_files_below_a_directory_with_a_pool_and_a_start_index(placed: Placed) -> None:
    names = ("pool/f", "index/f")
    put(placed, *names)
    for name in ("pool", "index"):
        (placed.mount / name).mkdir()
    lfs = "from tarazu.sim.testbed.lfs import main; main(%r)"
    for words in (["setstripe", "-p", "flash", "pool"], ["setstripe", "-i", "6", "-c", "1", "index"]):
        done = placed.bare([sys.executable, "-c", lfs % (words,)])
        assert done.returncode == 0, done.stderr
    source = "import os\nfor n in ('pool/f', 'index/f'): os.write(os.open(n, os.O_CREAT | os.O_WRONLY), b'x')"
    assert placed.python(source).stderr == ""
    assert [placed.osts(name) for name in names] == 2 * [[[3, 1, 5]]]


@both_layouts
def test_a_refused_layout_leaves_the_default_one(placed: Placed, parts: bool) -> None:
    placed.bed.set_ost(0 if parts else 1, no_create=True)
    put(placed, "f", parts=parts)
    source = "import os; os.write(os.open('f', os.O_CREAT | os.O_EXCL | os.O_WRONLY), b'x')"
    assert placed.python(source).stderr == ""
    assert placed.create("/f").outcome == REFUSED and not {0, 1} & set(placed.osts("f")[0]) - {1 - parts}


def test_a_refused_late_component_is_replaced_before_the_program_has_the_file(placed: Placed) -> None:
    placed.bed.set_ost(6, no_create=True)
    put(placed, "f", parts=True)
    source = "import os; f = os.open('f', os.O_CREAT | os.O_WRONLY); print(os.pwrite(f, b'x', 2 << 20))"
    assert placed.python(source).stdout == "1\n"
    assert placed.create("/f").outcome == PARTLY and 6 not in placed.osts("f")[1]


@pytest.mark.parametrize("client", ["client1", "client2"])
@both_layouts
def test_many_processes_open_one_new_file_at_the_same_moment(
    placed: Placed, compiled: Any, parts: bool, client: str
) -> None:
    """On one node, and on two: one makes it, all have the same file with the planned layout, nothing else is left."""
    put(placed, "s", parts=parts, shared=True)
    racer = compiled("racer.c")
    for _ in range(10):
        (placed.mount / "s").unlink(missing_ok=True)
        when = str(time.time() + 0.15)
        running = [
            subprocess.Popen(
                [racer, "s", str(1 << 20), when, str(r)],
                env=placed.environ(TESTBED_CLIENT=client if r % 2 else "client1"), cwd=placed.mount,
            )
            for r in range(12)
        ]  # fmt: skip
        assert [process.wait(LONG_S) for process in running] == [0] * 12
        assert placed.osts("s") == wanted(placed, parts) and os.listdir(placed.mount) == ["s"]
        assert stat.S_ISREG((placed.mount / "s").stat().st_mode) and (placed.mount / "s").stat().st_nlink == 1


def test_a_sticky_directory_of_somebody_elses(placed: Placed) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    put(placed, "d/f")
    (placed.mount / "d").mkdir()
    (placed.mount / "d").chmod(0o1777)
    let_others_in(placed)
    placed.spool_directory.mkdir(exist_ok=True)
    source = "import os; os.write(os.open('d/f', os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), b'x')"
    done = subprocess.run(
        [interpreter(65534), "-c", source], env=placed.environ(TARAZU_SPOOL="off"), cwd=placed.mount, user=65534,
        group=65534, extra_groups=[], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (placed.mount / "d" / "f").read_bytes() == b"x" and os.listdir(placed.mount / "d") == ["f"]
    assert placed.osts("d/f") == wanted(placed, parts=False)
