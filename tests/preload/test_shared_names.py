"""A shared file gets its name when it is complete: what a program, its neighbours and a kill in between see of that."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tarazu.run.plan.map_writer import MapWriter
from tarazu.stats.client import Mount
from tests.within_reach import interpreter

Placed = Any
HIT, REFUSED, RACED, PARTLY = 1, 4, 7, 8

both_layouts = pytest.mark.parametrize("parts", [False, True], ids=["plain", "progressive"])


def put(placed: Placed, *names: str, parts: bool = False, osts: tuple[int, ...] = (3, 1, 5)) -> None:
    kept: dict[str, Any] = {"shared": True}
    lists = placed.three_lists if parts else (osts,)
    if parts:
        kept["layout"] = placed.three_parts
    placed.map(*(placed.row(f"/{name}", *lists, row_id=i, **kept) for i, name in enumerate(names)))


def wanted(placed: Placed, parts: bool) -> list[list[int]]:
    return [list(part) for part in placed.three_lists] if parts else [[3, 1, 5]]


def left(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob(".tarazu-*"))


@both_layouts
@pytest.mark.parametrize("flags", ["os.O_EXCL", "0", "os.O_EXCL | os.O_CLOEXEC", "os.O_TRUNC"])
def test_the_program_has_the_file_under_its_own_name(placed: Placed, flags: str, parts: bool) -> None:
    put(placed, "a/f", parts=parts)
    source = f"""
import fcntl, os
os.mkdir("a")
fd = os.open("a/f", os.O_CREAT | os.O_RDWR | {flags}, 0o640)
st = os.fstat(fd)
print(fd, os.readlink(f"/proc/self/fd/{{fd}}"), oct(st.st_mode), st.st_nlink, st.st_size, os.listdir("a"))
print(fcntl.fcntl(fd, fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD), len(os.listdir("/proc/self/fd")))
print(os.pwrite(fd, b"third", 9 << 20))
"""
    bare = placed.bare(["python3", "-S", "-c", source])
    shutil.rmtree(placed.mount / "a")
    done = placed(["python3", "-S", "-c", source])
    assert (done.stdout, done.stderr) == (
        bare.stdout,
        bare.stderr,
    ) and "a/f 0o100640 1 0 ['f']" in done.stdout
    assert placed.osts("a/f") == wanted(placed, parts)
    assert placed.create("/a/f").outcome == HIT and left(placed.mount) == []


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
    for entry in placed.mount.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    done = placed.python(source)
    assert (done.stdout, done.stderr) == (bare.stdout, bare.stderr)


def test_access_lists_and_groups_of_the_directory_are_inherited(placed: Placed) -> None:
    if not shutil.which("setfacl") or os.geteuid() != 0:
        pytest.skip("needs setfacl and root")
    put(placed, "d/f")
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
        st = (placed.mount / "d" / "f").stat()
        acl = subprocess.run(
            ["getfacl", "-cn", "d/f"], cwd=placed.mount, capture_output=True, check=True
        ).stdout
        seen.append((st.st_mode, st.st_uid, st.st_gid, st.st_nlink, acl))
    assert seen[0] == seen[1] and placed.osts("d/f") == [[3, 1, 5]]


@pytest.mark.parametrize("at", ["fallocate", "linkat", "unlinkat"])
def test_a_kill_in_between_leaves_no_half_made_file_and_the_leader_sweeps(placed: Placed, at: str) -> None:
    """Killed as the call begins. Under its own name the file is complete or not there at all."""
    maps = MapWriter(placed.map_directory)
    maps.put("lustre", 8, [placed.row("/d/f", *placed.three_lists, layout=placed.three_parts, shared=True)])
    (placed.mount / "d").mkdir()
    program = "import os; os.write(os.open('d/f', os.O_CREAT | os.O_WRONLY, 0o644), b'x')"
    inject = ["-f", "-qq", "-o", "/dev/null", "-e", f"trace={at}", "-e", f"inject={at}:signal=KILL"]
    only = ["-P", "d/f"] if at == "linkat" else []
    environ = placed.environ()
    preload = environ.pop("LD_PRELOAD")
    argv = ["strace", *inject, *only, "-E", f"LD_PRELOAD={preload}", "python3", "-S", "-c", program]
    assert placed.run(argv, environ).returncode == -signal.SIGKILL
    there = (placed.mount / "d" / "f").exists()
    assert there == (at == "unlinkat")
    if there:
        assert placed.osts("d/f") == wanted(placed, parts=True)
    assert len(left(placed.mount)) == 1
    (placed.mount / "d" / ".tarazu-0123456789abcdef-0123456789abcdef").touch()  # of another step
    gone = maps.sweep([Mount(str(placed.mount), "lustre")])
    assert len(gone) == 1 and left(placed.mount) == [".tarazu-0123456789abcdef-0123456789abcdef"]
    assert (placed.mount / "d" / "f").exists() == there


def test_a_refused_layout_leaves_the_default_one(placed: Placed) -> None:
    placed.bed.set_ost(1, no_create=True)
    put(placed, "f")
    assert (
        placed.python("import os; os.write(os.open('f', os.O_CREAT | os.O_EXCL | os.O_WRONLY), b'x')").stderr
        == ""
    )
    assert (
        placed.create("/f").outcome == REFUSED and 1 not in placed.osts("f")[0] and left(placed.mount) == []
    )


def test_a_refused_late_component_is_replaced_before_the_file_has_its_name(placed: Placed) -> None:
    placed.bed.set_ost(6, no_create=True)
    put(placed, "f", parts=True)
    source = "import os; f = os.open('f', os.O_CREAT | os.O_WRONLY); print(os.pwrite(f, b'x', 2 << 20))"
    assert placed.python(source).stdout == "1\n"
    assert placed.create("/f").outcome == PARTLY and 6 not in placed.osts("f")[1]


def test_a_file_that_somebody_makes_meanwhile_is_joined(placed: Placed, compiled: Any) -> None:
    """Many processes at once: one makes it, all have the same file, nothing else is left."""
    put(placed, "s", parts=True)
    racer = compiled("racer.c")
    for _ in range(5):
        (placed.mount / "s").unlink(missing_ok=True)
        when = str(time.time() + 0.15)
        running = [
            subprocess.Popen([racer, "s", str(1 << 20), when, str(r)], env=placed.environ(), cwd=placed.mount)
            for r in range(12)
        ]
        assert [process.wait(300) for process in running] == [0] * 12
        assert placed.osts("s") == wanted(placed, parts=True) and left(placed.mount) == []
        assert stat.S_ISREG((placed.mount / "s").stat().st_mode) and (placed.mount / "s").stat().st_nlink == 1


def test_directories_that_one_may_write_to_and_not_link_in(placed: Placed) -> None:
    """A sticky directory of somebody else's."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    put(placed, "d/f")
    (placed.mount / "d").mkdir()
    (placed.mount / "d").chmod(0o1777)
    placed.mount.chmod(0o755)
    placed.spool_directory.mkdir(exist_ok=True)
    source = "import os; os.write(os.open('d/f', os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), b'x')"
    done = subprocess.run(
        [interpreter(65534), "-c", source], env=placed.environ(TARAZU_SPOOL="off"), cwd=placed.mount, user=65534,
        group=65534, extra_groups=[], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (placed.mount / "d" / "f").read_bytes() == b"x" and left(placed.mount) == []
