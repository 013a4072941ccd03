"""Placed files have their layout; programs notice nothing of it, whatever is refused."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from tarazu import native
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.store.control import announce
from tarazu.store.placement_map import MapRow
from tests.map_rows import map_row

Placed = Any
MIB = 1 << 20


def plain_layout(count: int, size: int = MIB, pool: str = "") -> Layout:
    return Layout((Component(0, EOF, size, count, pool=pool),))


def pfl(*parts: tuple[int, int, int]) -> Layout:
    """(start, end, stripe count) of each component."""
    return Layout(tuple(Component(a, b, MIB, n) for a, b, n in parts), composite=True)


def row(key: str, layout: Layout, osts: Sequence[Sequence[int]], **others: Any) -> MapRow:
    return map_row(key, *osts, layout=layout, **others)


UNMANAGED, HIT, LATE, MISS, REFUSED, ADVISED, SKIPPED, RACED, PARTLY = range(9)
THREE = pfl((0, MIB, 1), (MIB, 8 * MIB, 2), (8 * MIB, EOF, 4))
THREE_OSTS = ((0,), (5, 6), (1, 2, 3, 4))

CREATE = """
import fcntl, os, sys
name, flags = sys.argv[1], eval(sys.argv[2])
try:
    fd = os.open(name, flags | os.O_CREAT, int(sys.argv[3], 8) if len(sys.argv) > 3 else 0o644)
    print("fd", fd, "flags", fcntl.fcntl(fd, fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD))
    if flags & 3:
        print("wrote", os.write(fd, b"abc"), os.pwrite(fd, b"x", 9 << 20))
    print("size", os.fstat(fd).st_size, oct(os.fstat(fd).st_mode))
    os.close(fd)
except OSError as error:
    print("errno", error.errno)
"""


def create(placed: Placed, name: str, flags: str = "os.O_RDWR", mode: str = "644", **extra: str) -> str:
    done = placed.python(CREATE, name, flags, mode, **extra)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def same_as_without(placed: Placed, name: str, flags: str, mode: str = "644") -> None:
    """What the program sees is what it sees without the library; the file is left as the library made it."""
    (placed.mount / name).unlink(missing_ok=True)
    bare = placed.bare([sys.executable, "-c", CREATE, name, flags, mode]).stdout
    (placed.mount / name).unlink(missing_ok=True)
    assert create(placed, name, flags, mode) == bare


@pytest.mark.parametrize("apply", ["direct", "llapi"])
@pytest.mark.parametrize(
    "flags", ["os.O_RDWR", "os.O_WRONLY|os.O_EXCL", "os.O_WRONLY|os.O_TRUNC|os.O_CLOEXEC"]
)
def test_a_plain_list(placed: Placed, apply: str, flags: str) -> None:
    placed.map(row("/f", plain_layout(3), [(3, 1, 5)]))
    placed.environment["TARAZU_APPLY"] = apply
    same_as_without(placed, "f", flags)
    assert placed.osts("f") == [[3, 1, 5]]
    made = placed.create("/f")
    assert (made.outcome, made.found, made.row_id, made.generation, made.errno) == (HIT, 1, 7, 1, 0)
    assert [c.osts for c in native.decode_lov(made.layout).components] == [(3, 1, 5)]


@pytest.mark.parametrize("apply", ["direct", "llapi"])
def test_all_components_are_instantiated_at_creation(placed: Placed, apply: str) -> None:
    placed.map(row("/f", THREE, THREE_OSTS))
    placed.environment["TARAZU_APPLY"] = apply
    done = placed.python("open('f', 'w')")
    assert done.stderr == ""
    assert placed.osts("f") == [list(o) for o in THREE_OSTS]
    assert (placed.mount / "f").stat().st_size == 0
    assert placed.create("/f").outcome == HIT


def test_a_file_that_cannot_be_written_gets_hints_on_late_components(placed: Placed) -> None:
    placed.map(row("/f", THREE, THREE_OSTS))
    same_as_without(placed, "f", "os.O_RDONLY")
    assert placed.create("/f").outcome == HIT
    assert placed.osts("f") == [[0], [], []]


@pytest.mark.parametrize("state", [{"active": False}, {"no_create": True}, {"full": True}])
@pytest.mark.parametrize("apply", ["direct", "llapi"])
@pytest.mark.parametrize("flags", ["os.O_RDWR", "os.O_RDWR|os.O_EXCL", "os.O_WRONLY|os.O_TRUNC|os.O_APPEND"])
def test_a_refused_plain_list_leaves_the_default_layout(
    placed: Placed, apply: str, state: dict[str, bool], flags: str
) -> None:
    placed.map(row("/f", plain_layout(3), [(3, 1, 5)]))
    placed.environment["TARAZU_APPLY"] = apply
    placed.bed.set_ost(5, **state)
    same_as_without(placed, "f", flags)
    made = placed.create("/f")
    assert made.outcome == REFUSED and made.errno != 0 and made.layout == b""
    assert len(placed.osts("f")[0]) == 1


@pytest.mark.parametrize("state", [{"active": False}, {"no_create": True}, {"full": True}])
@pytest.mark.parametrize("rank", [-1, 3])
def test_a_late_component_on_a_refusing_ost_falls_back_to_hints(
    placed: Placed, state: dict[str, bool], rank: int
) -> None:
    """With a row of this rank the file is truncated up and back, without one space is reserved."""
    placed.map(row("/f", THREE, THREE_OSTS, rank=rank))
    placed.bed.set_ost(6, **state)
    placed.environment |= {"TARAZU_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
    same_as_without(placed, "f", "os.O_RDWR")
    made = placed.create("/f")
    assert made.outcome == PARTLY
    after = placed.osts("f")
    assert after[0] == [0] and len(after[2]) == 4  # the write at 9 MiB went somewhere
    assert native.decode_lov(made.layout).components[-1].component.end_bytes == EOF


def test_a_file_size_limit_is_no_signal(placed: Placed) -> None:
    placed.map(row("/f", THREE, THREE_OSTS))
    assert placed(["sh", "-c", "ulimit -f 2000; echo x > f"]).returncode == 0
    assert placed.osts("f") == [[0], [], []]
    assert placed.create("/f").outcome == HIT


def test_duplicate_osts_are_refused_and_harmless(placed: Placed) -> None:
    placed.map(row("/f", plain_layout(2), [(3, 4)]))
    path = placed.map_directory / "map.1"
    data = bytearray(path.read_bytes())
    at = data.index(b"\x03\x00\x04\x00", 128)
    data[at : at + 4] = b"\x03\x00\x03\x00"
    path.write_bytes(data)
    same_as_without(placed, "f", "os.O_RDWR")
    made = placed.create("/f")
    assert (made.outcome, made.errno) == (REFUSED, errno.EINVAL)


def test_an_index_that_the_file_system_does_not_have_is_never_sent(placed: Placed) -> None:
    path = placed.map(row("/f", plain_layout(2), [(3, 4)]))
    data = bytearray(path.read_bytes())
    at = data.index(b"\x03\x00\x04\x00", 128)
    data[at : at + 4] = b"\x03\x00\x63\x00"
    path.write_bytes(data)
    same_as_without(placed, "f", "os.O_RDWR")
    assert placed.create("/f").outcome == MISS
    assert placed.bed.crashed() is None


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        ("os.O_RDWR", "444"),
        ("os.O_RDWR|os.O_NOCTTY|0o20000", "644"),
        ("os.O_RDWR|os.O_APPEND", "644"),
    ],
)
def test_skipped_before_anything_is_touched(placed: Placed, flags: str, mode: str) -> None:
    explicit = [False] if "APPEND" in flags else None
    placed.map(row("/f", plain_layout(2), [(3,)] if explicit else [(3, 4)], explicit=explicit))
    if "NOCTTY" not in flags:  # without a layout such a descriptor gives EBADF, with and without us
        same_as_without(placed, "f", flags, mode)
    else:
        create(placed, "f", flags, mode)
    assert placed.create("/f").outcome == SKIPPED


def test_a_umask_that_takes_the_owners_write_right_skips(placed: Placed) -> None:
    placed.map(row("/f", plain_layout(2), [(3, 4)]), row("/g", plain_layout(2), [(3, 4)]))
    source = "import os; os.umask(0o222); os.open('f', 65); os.umask(0o022); os.open('g', 65, 0o644)"
    assert placed.python(source).stderr == ""
    assert placed.create("/f").outcome == SKIPPED
    assert placed.create("/g").outcome == HIT


def test_an_existing_file_keeps_layout_and_content(placed: Placed) -> None:
    placed.map(row("/f", THREE, THREE_OSTS))
    placed.bare([sys.executable, "-c", "open('f', 'w').write('precious')"])
    before = placed.osts("f")
    assert "flags" in create(placed, "f", "os.O_RDWR")
    assert (placed.mount / "f").read_bytes()[:8] == b"abccious"
    assert placed.osts("f") == before
    made = placed.create("/f")
    assert made.outcome == RACED and made.flags == 1
    assert create(placed, "f", "os.O_RDWR|os.O_EXCL") == f"errno {errno.EEXIST}\n"
    assert placed.creates == []


def test_a_dangling_link_and_a_fifo_are_opened_as_ever(placed: Placed) -> None:
    placed.map(row("/f", plain_layout(2), [(3, 4)]), row("/p", plain_layout(2), [(3, 4)]))
    outside = placed.work / "outside"
    (placed.mount / "f").symlink_to(outside)
    out = create(placed, "f", "os.O_RDWR")
    assert outside.stat().st_size == (9 << 20) + 1
    outside.unlink()
    assert placed.bare([sys.executable, "-c", CREATE, "f", "os.O_RDWR", "644"]).stdout == out
    source = "import os,fcntl; os.mkfifo('p'); f=os.open('p', os.O_RDWR|os.O_CREAT, 0o644); print(fcntl.fcntl(f, 3))"
    assert int(placed.python(source).stdout) & 0o20000 == 0


def test_volatile_names_hit_by_template(placed: Placed) -> None:
    names = native.template("/run.2024-05-06/777001/out.3", job_id="777001", rank=3)
    path = "/run.2024-05-06/777001/out.3"
    placed.map(
        *(row(path, plain_layout(1), [(n + 4,)], rank=3, n=n, names=names, row_id=n) for n in range(2))
    )
    source = "import os; os.makedirs('run.2026-11-20/888123'); open('run.2026-11-20/888123/out.3', 'w')"
    assert placed.python(source, TARAZU_JOB="888123", TARAZU_RANK="3").stderr == ""
    made = placed.create("/run.2026-11-20/888123/out.3")
    assert (made.outcome, made.found, made.precise) == (HIT, 2, "/run.{date}/{job}/out.{rank}")
    assert placed.osts("run.2026-11-20/888123/out.3") == [[4]]


def test_late_then_hit_then_stopped_in_one_process(placed: Placed) -> None:
    placed.map(row("/a1", plain_layout(1), [(4,)]))
    announce(placed.map_directory, 0)
    source = """
import sys
from pathlib import Path
from tarazu.store.control import announce, stop
open('a0', 'w').close()
announce(sys.argv[1], 1)
open('a1', 'w').close()
stop(sys.argv[1])
open('a2', 'w').close()
"""
    assert placed.python(source, str(placed.map_directory)).stderr == ""
    assert [c.outcome for c in placed.creates] == [LATE, HIT]
    assert placed.osts("a1") == [[4]]


def test_advise_and_observe_do_not_touch_anything(placed: Placed) -> None:
    placed.map(row("/f", plain_layout(3), [(3, 1, 5)]))
    create(placed, "f", TARAZU_MODE="advise")
    assert (placed.create("/f").outcome, placed.create("/f").row_id) == (ADVISED, 7)
    assert len(placed.osts("f")[0]) == 1
    (placed.mount / "f").unlink()
    create(placed, "f", TARAZU_MODE="observe")
    assert placed.create("/f").outcome == UNMANAGED


def test_not_lustre_is_skipped(placed: Placed) -> None:
    other = placed.work / "other"
    other.mkdir()
    placed.map(row("/f", plain_layout(3), [(3, 1, 5)]))
    placed.mount = other
    create(placed, "f", TARAZU_MOUNTS=f"{other}=lustre")
    assert placed.create("/f").outcome == SKIPPED


@pytest.mark.parametrize("layout", ["plain", "pfl"])
@pytest.mark.parametrize("apply", ["direct", "llapi"])
def test_many_ranks_race_to_create_one_file(placed: Placed, layout: str, apply: str) -> None:
    placed.map(
        row("/s", plain_layout(4), [(1, 3, 5, 7)]) if layout == "plain" else row("/s", THREE, THREE_OSTS)
    )
    source = """
import os, sys, time
children = []
start = time.time() + 0.3
for rank in range(12):
    pid = os.fork()
    if pid == 0:
        while time.time() < start: pass
        fd = os.open('s', os.O_RDWR | os.O_CREAT, 0o644)
        ok = os.pwrite(fd, bytes([rank + 1]) * 1000, rank * 1000000)
        os.close(fd)
        os._exit(0 if ok == 1000 else 1)
    children.append(pid)
sys.exit(max(os.waitpid(p, 0)[1] for p in children))
"""
    done = placed.python(source, OMPI_COMM_WORLD_SIZE="12", TARAZU_RANK="0", TARAZU_APPLY=apply)
    assert (done.returncode, done.stderr) == (0, "")
    data = (placed.mount / "s").read_bytes()
    assert len(data) == 11001000
    assert all(data[r * 1000000] == r + 1 and data[r * 1000000 + 999] == r + 1 for r in range(12))
    assert placed.osts("s") == ([[1, 3, 5, 7]] if layout == "plain" else [list(o) for o in THREE_OSTS])
    made = placed.creates
    assert (
        len(made) == 2  # by its maker; that others of the same rank joined is noted once
        and {c.outcome for c in made} <= {HIT, RACED}
        and sum(not c.flags & 1 for c in made) == 1
    )


def test_a_pool_and_a_sel_component_are_kept(placed: Placed) -> None:
    grown = Layout(
        (Component(0, 512 * MIB, MIB, 1, extension_bytes=64 * MIB), Component(512 * MIB, EOF, MIB, 2)),
        composite=True,
    )
    placed.map(
        row("/p", plain_layout(2, pool="flash"), [(3, 1)]),
        row("/z", grown, [(2,), (4,)], explicit=[True, False]),
    )
    assert placed.python("open('p','w').close(); open('z','w').close()").stderr == ""
    assert [c.outcome for c in placed.creates] == [HIT, HIT]
    blob = placed.bed.mds.layout_blob(placed.mount / "p")
    assert blob and native.decode_lov(blob).components[0].component.pool == "flash"
    blob = placed.bed.mds.layout_blob(placed.mount / "z")
    assert blob and native.decode_lov(blob).layout().components[0].extension_bytes == 64 * MIB


@pytest.mark.parametrize("kind", ["fopen", "creat", "mode-a"])
def test_streams_and_creat_are_placed(placed: Placed, kind: str, compiled: Any) -> None:
    placed.map(row("/f", plain_layout(3), [(3, 1, 5)]))
    program = compiled("streams.c")
    bare = placed.bare([program, kind, "f"])
    (placed.mount / "f").unlink()
    done = placed([program, kind, "f"])
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert placed.osts("f") == [[3, 1, 5]]
    assert placed.create("/f").outcome == HIT


def test_what_libc_opens_by_itself_is_recorded_and_not_placed(placed: Placed, compiled: Any) -> None:
    """A stream with a character set. A file made for it first could be refused to its own open."""
    placed.map(row("/f", plain_layout(3), [(3, 1, 5)]))
    done = placed([compiled("streams.c"), "ccs", "f"])
    assert (done.returncode, done.stderr) == (0, "") and placed.create("/f").outcome == SKIPPED


def test_an_appending_stream_keeps_the_locks_that_the_program_holds(placed: Placed) -> None:
    """A second descriptor of ours, opened and closed for a file that is there, would drop them."""
    placed.map(row("/f", plain_layout(3), [(3, 1, 5)]))
    source = """
import ctypes, fcntl, os
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
fd = os.open("f", os.O_CREAT | os.O_RDWR, 0o644)
fcntl.lockf(fd, fcntl.LOCK_EX)
assert libc.fopen(b"f", b"a")
if os.fork() == 0:
    try:
        fcntl.lockf(os.open("f", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os._exit(0)
    os._exit(1)
print(os.wait()[1])
"""
    done = placed.python(source)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_foreign_or_broken_map_is_ignored(placed: Placed) -> None:
    path = placed.map(row("/f", plain_layout(3), [(3, 1, 5)]))
    path.chmod(0o666)
    create(placed, "f")
    assert placed.create("/f").outcome == LATE
    path = placed.map(row("/g", plain_layout(3), [(3, 1, 5)]))
    path.write_bytes(path.read_bytes()[:-8])
    create(placed, "g")
    assert placed.create("/g").outcome == LATE
    placed.map(row("/h", plain_layout(3), [(3, 1, 5)]), expires_s=1000)
    create(placed, "h")
    assert placed.create("/h").outcome == LATE


def test_placement_without_recording(placed: Placed) -> None:
    placed.map(row("/f", plain_layout(3), [(3, 1, 5)]))
    create(placed, "f", TARAZU_RECORD="off")
    assert placed.osts("f") == [[3, 1, 5]]
    assert placed.spools == []


def test_lists_as_hints_on_request(placed: Placed) -> None:
    placed.map(row("/f", THREE, THREE_OSTS))
    assert placed(["touch", "f"], TARAZU_LISTS="hints").returncode == 0
    assert placed.osts("f") == [[0], [], []]
    assert placed.create("/f").outcome == HIT


def test_openat_and_relative_names_with_llapi(placed: Placed) -> None:
    placed.map(row("/d/f", plain_layout(3), [(3, 1, 5)]), row("/d/g", plain_layout(2), [(6, 2)]))
    source = """
import os
os.mkdir("d")
d = os.open("d", os.O_RDONLY)
os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=d))
os.chdir("d")
open("g", "x").close()
"""
    assert placed.python(source, TARAZU_APPLY="llapi").stderr == ""
    assert (placed.osts("d/f"), placed.osts("d/g")) == ([[3, 1, 5]], [[6, 2]])


def test_maps_that_were_replaced_are_unmapped(placed: Placed) -> None:
    """A step that plans again and again must not keep all its plans mapped, whatever its threads read meanwhile."""
    source = """
import os, sys, threading
def make(names):
    for name in names: os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644))
for line in sys.stdin:
    g = line.strip()
    threads = [threading.Thread(target=make, args=([f"{g}.{t}.{i}" for i in range(20)],)) for t in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(sum("/map." in m for m in open("/proc/self/maps")), flush=True)
"""
    placed.map(row("/none", plain_layout(1), [(0,)]))
    placed.spool_directory.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", source], env=placed.environ(), cwd=placed.mount, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout
        mapped = []
        for generation in range(2, 30):
            names = [f"/{generation}.{t}.{i}" for t in range(4) for i in range(20)]
            path = placed.map(
                *(row(n, plain_layout(2), [(generation % 8, (generation + 1) % 8)]) for n in names)
            )
            path.with_name(f"map.{generation - 1}").unlink()
            process.stdin.write(f"{generation}\n")
            process.stdin.flush()
            mapped.append(int(process.stdout.readline()))
        process.stdin.close()
    assert process.returncode == 0 and max(mapped) <= 2
    assert {c.outcome for c in placed.creates} == {HIT} and len(placed.creates) == 28 * 80
    assert placed.osts("9.0.0") == [[1, 2]]
