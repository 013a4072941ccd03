"""A placed file is made for reading, gets its layout, and is opened again: what the program sees of that."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tarazu.signals import stat_of
from tests.preload.new_files import Placed, both_layouts, empty, let_others_in, put, wanted
from tests.waiting import LONG_S, until
from tests.within_reach import interpreter

HIT, REFUSED, SKIPPED, RACED, PARTLY = 1, 4, 6, 7, 8

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


FLAGS_AT = {"2": 2, "56": 3, "257": 3}
"""Of /proc/PID/syscall, by the numbers of open and openat on x86_64 and aarch64."""


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
        until(lambda: waits_in_open(process.pid))
        process.send_signal(signal.SIGALRM)
        assert process.communicate(timeout=LONG_S)[0] == "-1 EINTR\n"
    finally:
        process.kill()
        process.wait()


def waits_in_open(pid: int) -> bool:
    """In the program's own: the library's are none for writing."""
    call = Path(f"/proc/{pid}/syscall").read_text().split()
    flags = int(call[FLAGS_AT[call[0]]], 16) if call[0] in FLAGS_AT else 0
    return flags & os.O_ACCMODE == os.O_WRONLY and stat_of(pid)[0] == "S"


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
    refusing = 0 if parts else 1
    placed.bed.set_ost(refusing, no_create=True)
    put(placed, "f", parts=parts)
    source = "import os; os.write(os.open('f', os.O_CREAT | os.O_EXCL | os.O_WRONLY), b'x')"
    assert placed.python(source).stderr == ""
    assert placed.create("/f").outcome == REFUSED and refusing not in placed.osts("f")[0]


def test_a_refused_late_component_is_replaced_before_the_program_has_the_file(placed: Placed) -> None:
    placed.bed.set_ost(6, no_create=True)
    put(placed, "f", parts=True)
    source = "import os; f = os.open('f', os.O_CREAT | os.O_WRONLY); print(os.pwrite(f, b'x', 2 << 20))"
    assert placed.python(source).stdout == "1\n"
    assert placed.create("/f").outcome == PARTLY and 6 not in placed.osts("f")[1]


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
