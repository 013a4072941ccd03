"""Programs as people run them, and those of tests/preload that try what is hard: on CephFS the same with the library as
without, in output, status and files.

Not run here is what knows no file system (names, maps, spools, the switch, the control page, sanitizers, mounts: the
code is the same), and what is Lustre's alone (components, OST lists, liblustreapi, MDTs, names beside a shared file's
own, which a file with a pool from the start does not need).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.ceph.library import HIT, RACED, SKIPPED, OnCeph, on_ceph
from tests.preload.conftest import compiled
from tests.preload.test_real_programs import CASES, clean, contents, inputs

pytestmark = [pytest.mark.ceph, pytest.mark.slow]
__all__ = ["compiled", "inputs", "on_ceph"]
THREADS = 100
LATE = 2


def compare(on: OnCeph, argv: Sequence[str | Path], names: Sequence[str], **extra: str) -> None:
    """`names` are placed; all else is as without the library."""
    on.map(*(on.row(f"/{name}") for name in names))
    bare = on.bare(argv)
    before = contents(on.mount)
    clean(on)
    done = on(argv, **extra)
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert contents(on.mount) == before
    for name in names:
        first, *again = [c.outcome for c in on.creates if c.key == f"/{name}"]
        assert first == HIT and set(again) <= {RACED, HIT} and on.pool(name) == "third", name


@pytest.mark.parametrize("case", CASES)
def test_it_is_placed_and_writes_the_same(on_ceph: OnCeph, inputs: Path, case: str) -> None:
    if case == "hdf5":
        pytest.importorskip("h5py")
    words, names = CASES[case]
    compare(on_ceph, [word.replace("{in}", str(inputs)) for word in words], names)


def test_errno_and_results(on_ceph: OnCeph, compiled: Any) -> None:
    program = compiled("errors.c")
    on_ceph.map(*(on_ceph.row(f"/{name}") for name in ("f", "c", "g", "h", "k", "f/g")))
    bare = on_ceph.bare([program])
    clean(on_ceph)
    done = on_ceph([program], TARAZU_RECORD="full")
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert {c.key for c in on_ceph.creates if c.outcome == HIT} == {"/f", "/c", "/g", "/k"}


@pytest.mark.parametrize("record", ["light", "full"])
def test_many_threads(on_ceph: OnCeph, compiled: Any, record: str) -> None:
    on_ceph.map(*(on_ceph.row(f"/own.{i}") for i in range(THREADS)), on_ceph.row("/shared", shared=True))
    done = on_ceph([compiled("crowd.c"), str(THREADS)], TARAZU_RECORD=record)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    expected = b"".join(bytes([1 + i % 100]) * 512 for i in range(THREADS))
    assert (on_ceph.mount / "shared").read_bytes() == expected
    made = [c for c in on_ceph.creates if c.key != "/by-handler"]
    assert {c.outcome for c in made} <= {HIT, RACED, LATE}
    assert {on_ceph.pool(c.key[1:]) for c in made if c.outcome == HIT} == {"third"}


def test_children_of_every_kind(on_ceph: OnCeph, compiled: Any) -> None:
    names = ("kept", "cloned", "after")
    on_ceph.map(*(on_ceph.row(f"/{name}") for name in names))
    done = on_ceph([compiled("spawn.c")])
    assert (done.returncode, done.stderr) == (0, "")
    assert {c.key: c.outcome for c in on_ceph.creates} == {f"/{name}": HIT for name in names}
    assert {on_ceph.pool(name) for name in names} == {"third"}


def test_a_file_size_limit_is_no_signal(on_ceph: OnCeph) -> None:
    """Also one of nothing, below the byte by which a pool is tried; then there is no record either."""
    compare(on_ceph, ["sh", "-c", "ulimit -f 2000; echo x > f"], ["f"])
    clean(on_ceph)
    on_ceph.map(on_ceph.row("/g"))
    done = on_ceph.python(LIMITED)
    assert (done.returncode, done.stderr, on_ceph.pool("g")) == (0, "", "third")


LIMITED = """
import os, resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
os.close(os.open("g", os.O_CREAT | os.O_RDWR))
"""


def test_a_umask_that_takes_the_owners_write_right_skips(on_ceph: OnCeph) -> None:
    on_ceph.map(on_ceph.row("/f"), on_ceph.row("/g"))
    source = "import os; os.umask(0o222); os.open('f', 65); os.umask(0o022); os.open('g', 65, 0o644)"
    assert on_ceph.python(source).stderr == ""
    assert (on_ceph.create("/f").outcome, on_ceph.create("/g").outcome) == (SKIPPED, HIT)


def test_a_dangling_link_and_a_fifo_are_opened_as_ever(on_ceph: OnCeph) -> None:
    on_ceph.map(on_ceph.row("/f"), on_ceph.row("/p"))
    outside = on_ceph.work / "outside"
    (on_ceph.mount / "f").symlink_to(outside)
    source = "import os; os.write(os.open('f', os.O_CREAT | os.O_RDWR, 0o644), b'x')"
    assert on_ceph.python(source).stderr == "" and outside.read_bytes() == b"x"
    source = "import os; os.mkfifo('p'); print(os.open('p', os.O_RDWR | os.O_CREAT, 0o644) > 2)"
    assert on_ceph.python(source).stdout == "True\n"


def test_nothing_is_truncated_unlinked_or_renamed(on_ceph: OnCeph) -> None:
    on_ceph.map(on_ceph.row("/f"))
    environ = on_ceph.environ()
    preload, trace = environ.pop("LD_PRELOAD"), on_ceph.work / "trace"
    calls = "trace=ftruncate,truncate,unlink,unlinkat,rename,renameat,renameat2,link,linkat"
    argv = ["strace", "-f", "-e", calls, "-o", str(trace), "-E", f"LD_PRELOAD={preload}", "touch", "f"]
    assert on_ceph.run(argv, environ).returncode == 0
    lines = [line for line in trace.read_text().splitlines() if "(" in line and ".tzs" not in line]
    assert (lines, on_ceph.pool("f")) == ([], "third")


@pytest.mark.parametrize("user", [True, False], ids=["user", "root"])
def test_a_directory_that_may_not_be_written_and_one_that_is_not_there(on_ceph: OnCeph, user: bool) -> None:
    on_ceph.map(on_ceph.row("/shut/f"), on_ceph.row("/none/f"))
    (on_ceph.mount / "shut").mkdir(mode=0o555)
    source = """
import os, sys
if sys.argv[1]: os.setuid(65534)
for name in ("shut/f", "none/f"):
    try: print(os.write(os.open(name, os.O_CREAT | os.O_RDWR), b"x"))
    except OSError as error: print(error.errno)
"""
    argv = [sys.executable, "-c", source, "user" if user else ""]
    on_ceph.spool_directory.mkdir()
    on_ceph.spool_directory.chmod(0o777)
    bare = on_ceph.bare(argv)
    (on_ceph.mount / "shut" / "f").unlink(missing_ok=True)
    done: subprocess.CompletedProcess[str] = on_ceph(argv)
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
