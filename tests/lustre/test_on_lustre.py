"""The placement library on a real Lustre: layouts as asked, refusals unnoticed, nothing of anybody's changed."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tarazu.run.plan import default_layouts, llapi
from tarazu.stats.client import Mount

pytestmark = pytest.mark.lustre
LustreMount = Any
UNMANAGED, HIT, LATE, MISS, REFUSED, ADVISED, SKIPPED, RACED, PARTLY = range(9)

both_ways = pytest.mark.parametrize("apply", ["direct", "llapi"])
both_lists = pytest.mark.parametrize("lists", ["instantiate", "hints"])


def need(lustre: LustreMount, count: int) -> None:
    if len(lustre.osts) < count:
        pytest.skip(f"needs {count} OSTs, there are {len(lustre.osts)}")


@both_ways
@pytest.mark.parametrize(
    "flags", ["os.O_RDWR", "os.O_RDWR | os.O_EXCL", "os.O_RDWR | os.O_APPEND", "os.O_RDONLY"]
)
def test_a_plain_list(lustre: LustreMount, apply: str, flags: str) -> None:
    osts = lustre.some(3)[::-1]
    lustre.map(lustre.row("f", osts))
    lustre.same("f", flags, TARAZU_APPLY=apply)
    assert lustre.layout_of("f") == [osts]
    made = lustre.created("f")
    assert made.outcome == HIT
    assert made.layout == os.getxattr(lustre.directory / "f", "lustre.lov")


@both_ways
@both_lists
@pytest.mark.parametrize("flags", ["os.O_RDWR", "os.O_RDWR | os.O_EXCL"])
def test_a_progressive_layout(lustre: LustreMount, apply: str, lists: str, flags: str) -> None:
    layout, osts = lustre.three()
    lustre.map(lustre.row("f", *osts, layout=layout))
    done = lustre.same("f", flags, TARAZU_APPLY=apply, TARAZU_LISTS=lists)
    assert done.content is not None and done.content.endswith(b"third") and len(done.content) == (9 << 20) + 5
    actual = lustre.layout_of("f")
    assert actual[0] == osts[0] and all(actual)
    made = lustre.created("f")
    # A file that others may have opened is instantiated by fallocate, which not every server has.
    assert made.outcome == HIT if lists == "hints" or "EXCL" in flags else made.outcome in (HIT, PARTLY)
    if made.outcome == HIT and lists == "instantiate":
        assert actual == list(osts)


def test_an_empty_placed_file_is_empty(lustre: LustreMount) -> None:
    layout, osts = lustre.three()
    lustre.map(lustre.row("f", *osts, layout=layout))
    assert (
        lustre.python("import os; os.close(os.open('f', os.O_CREAT | os.O_EXCL | os.O_WRONLY))").returncode
        == 0
    )
    assert (lustre.directory / "f").stat().st_size == 0
    assert lustre.layout_of("f") == list(osts)


@both_ways
@pytest.mark.parametrize("composite", [False, True])
def test_an_ost_twice_in_a_list(lustre: LustreMount, apply: str, composite: bool) -> None:
    """Refused by the MDS with EINVAL. No map writer makes such a row: the map is changed by hand."""
    need(lustre, 4)
    layout, osts = lustre.three()
    path = lustre.map(
        lustre.row("f", *osts, layout=layout) if composite else lustre.row("f", lustre.some(2, 1))
    )
    first, second = lustre.some(2, 1)
    pair = first.to_bytes(2, "little") + second.to_bytes(2, "little")
    data = path.read_bytes()
    at = data.rindex(pair)
    path.write_bytes(data[:at] + pair[:2] * 2 + data[at + 4 :])
    done = lustre.same("f", TARAZU_APPLY=apply)
    assert done.status == 0 and done.content is not None
    assert lustre.created("f").outcome in (REFUSED, PARTLY)


@both_ways
@pytest.mark.parametrize("mode", ["444", "400", "000"])
def test_a_file_that_its_owner_may_not_write(lustre: LustreMount, apply: str, mode: str) -> None:
    layout, osts = lustre.three()
    lustre.map(lustre.row("f", *osts, layout=layout))
    done = lustre.same("f", "os.O_RDWR | os.O_EXCL", mode, TARAZU_APPLY=apply)
    assert done.status == 0 and done.content is not None and done.content.endswith(b"third")
    assert lustre.created("f").outcome == SKIPPED


@both_ways
@pytest.mark.parametrize("flags", ["os.O_EXCL", "os.O_APPEND", "os.O_TRUNC", "0"])
def test_an_existing_file_keeps_its_layout(lustre: LustreMount, apply: str, flags: str) -> None:
    layout, osts = lustre.three()
    lustre.map(lustre.row("f", *osts, layout=layout))
    seen = []
    for preload in (False, True):
        (lustre.directory / "f").unlink(missing_ok=True)
        lustre.see(False, "f")
        before = lustre.layout_of("f")
        seen.append(lustre.see(preload, "f", f"os.O_RDWR | {flags}", TARAZU_APPLY=apply))
        assert lustre.layout_of("f")[0] == before[0]
    assert seen[0] == seen[1]
    assert seen[1].status == (3 if flags == "os.O_EXCL" else 0)
    if flags != "os.O_EXCL":
        assert lustre.created("f").outcome == RACED


@both_ways
def test_a_file_that_lfs_made_keeps_its_layout(lustre: LustreMount, apply: str) -> None:
    need(lustre, 2)
    lustre.map(lustre.row("f", lustre.some(2)))
    lustre.lfs("setstripe", "-c", "1", "-i", str(lustre.osts[-1]), lustre.directory / "f")
    (lustre.directory / "f").chmod(0o666)
    before = lustre.layout_of("f")
    assert lustre.see(True, "f", TARAZU_APPLY=apply).status == 0
    assert lustre.layout_of("f") == before == [(lustre.osts[-1],)]
    assert lustre.created("f").outcome == RACED


HINTED = """
import fcntl, os, struct, sys
fd = os.open("f", os.O_CREAT | os.O_RDWR | os.O_NOCTTY | 0o20000, 0o644)
fcntl.ioctl(fd, 0x4008669A, bytearray(struct.pack("<IIQQIHH", 0x0BD10BD0, 1, 0, 0, 2 << 20, 1, int(sys.argv[1]))))
print(os.write(fd, b"data"))
"""


@both_ways
def test_a_layout_that_the_program_asks_for_wins(lustre: LustreMount, apply: str) -> None:
    """As MPI-IO drivers do with striping hints."""
    lustre.map(lustre.row("f", lustre.some(3)))
    done = lustre.python(HINTED, str(lustre.osts[-1]), TARAZU_APPLY=apply)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")
    assert lustre.layout_of("f") == [(lustre.osts[-1],)]
    assert lustre.created("f").outcome == SKIPPED


def test_a_directory_default_of_a_user_is_seen_by_the_leader(lustre: LustreMount) -> None:
    (lustre.directory / "own").mkdir()
    (lustre.directory / "own").chmod(0o777)
    lustre.lfs("setstripe", "-c", "1", "-S", "2M", lustre.directory / "own")
    mount = Mount(str(lustre.mount), lustre.fs_name)
    below = f"/{lustre.directory.name}"
    root, found = default_layouts.default_layouts([mount], [f"{below}/own/new", f"{below}/new"])
    assert found[f"{below}/own/new"] != root and found[f"{below}/new"] == root
    assert lustre.see(True, "own/f").status == 0
    assert "lmm_stripe_size:   2097152" in lustre.lfs("getstripe", "-y", lustre.directory / "own" / "f")


@both_ways
def test_not_lustre(lustre: LustreMount, apply: str) -> None:
    """A directory that only claims to be Lustre's."""
    other = lustre.work / "other"
    other.mkdir(exist_ok=True)
    other.chmod(0o777)
    kept, lustre.directory = lustre.directory, other
    prefix, lustre.prefix = lustre.prefix, ""
    try:
        lustre.map(lustre.row("f", lustre.some(2)))
        done = lustre.same("f", TARAZU_APPLY=apply, TARAZU_MOUNTS=f"{other}={lustre.fs_name}")
        assert done.status == 0 and list(other.iterdir()) == [other / "f"]
        assert lustre.created("f").outcome == SKIPPED
    finally:
        lustre.directory, lustre.prefix = kept, prefix


RACER = """
import os, sys, time
who, when = int(sys.argv[1]), float(sys.argv[2])
while time.time() < when: pass
fd = os.open("s", os.O_CREAT | os.O_RDWR, 0o644)
assert os.pwrite(fd, bytes([who + 1]) * 1000, who * (3 << 20)) == 1000
assert os.pread(fd, 1000, who * (3 << 20)) == bytes([who + 1]) * 1000
"""


@both_ways
@pytest.mark.parametrize("composite", [False, True])
def test_many_processes_race_to_create_one_file(lustre: LustreMount, apply: str, composite: bool) -> None:
    layout, osts = lustre.three()
    lustre.map(lustre.row("s", *osts, layout=layout) if composite else lustre.row("s", lustre.some(4)))
    when = str(time.time() + 1.0)
    running = [
        lustre.start([lustre.interpreter, "-c", RACER, str(i), when], TARAZU_APPLY=apply) for i in range(8)
    ]
    for process in running:
        with process:
            assert process.communicate(timeout=300) == ("", "")
        assert process.returncode == 0
    content = (lustre.directory / "s").read_bytes()
    assert all(content[i * (3 << 20) : i * (3 << 20) + 1000] == bytes([i + 1]) * 1000 for i in range(8))
    actual, made = lustre.layout_of("s"), [c for c in lustre.creates if c.key.endswith("/s")]
    # The others have no rank: that they joined is noted once.
    assert len(made) == 2 and {c.outcome for c in made} <= {HIT, RACED, PARTLY}
    if not composite:
        assert actual == [lustre.some(4)]
        assert {c.layout for c in made if not c.existed} == {
            os.getxattr(lustre.directory / "s", "lustre.lov")
        }
    assert actual[0] == (osts[0] if composite else lustre.some(4))


MAKER = """
import os, sys, time
while time.time() < float(sys.argv[1]): pass
for i in range(20):
    fd = os.open(f"shared.{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    assert os.pwrite(fd, b"m" * 1000, 0) == 1000
    os.close(fd)
"""
POLLER = """
import os, sys, time
at = int(sys.argv[2])
for i in range(20):
    while True:
        try:
            fd = os.open(f"shared.{i}", os.O_WRONLY)
            break
        except FileNotFoundError:
            pass
    assert os.pwrite(fd, b"p" * 1000, at) == 1000
    os.close(fd)
"""


@pytest.mark.parametrize("rank", ["0", ""], ids=["equal-ranks", "no-ranks"])
def test_what_a_poller_of_the_same_rank_writes_is_not_lost(lustre: LustreMount, rank: str) -> None:
    """A second process waits for the name and writes at once, while the first gives the file its objects. Not with
    liblustreapi, which has the file open for writing before it sets the layout: the second's write is EBADF then.
    """
    layout, osts = lustre.three()
    lustre.map(*(lustre.row(f"shared.{i}", *osts, layout=layout) for i in range(20)))
    when = str(time.time() + 1.0)
    extra = {"SLURM_PROCID": rank} if rank else {}
    places = (4096, 2 << 20, 9 << 20)
    running = [lustre.start([lustre.interpreter, "-c", POLLER, when, str(at)], **extra) for at in places] + [
        lustre.start([lustre.interpreter, "-c", MAKER, when], **extra)
    ]
    for process in running:
        with process:
            assert process.communicate(timeout=300) == ("", "")
        assert process.returncode == 0
    expected = bytearray(places[-1] + 1000)
    expected[:1000] = b"m" * 1000
    for at in places:
        expected[at : at + 1000] = b"p" * 1000
    damaged = [i for i in range(20) if (lustre.directory / f"shared.{i}").read_bytes() != expected]
    assert damaged == []


@pytest.mark.parametrize("how", ["absolute", "relative", "link", "dots", "dirfd", "chdir"])
def test_every_way_to_say_a_path(lustre: LustreMount, how: str) -> None:
    osts = lustre.some(2)[::-1]
    lustre.map(lustre.row("a/b/f", osts))
    source = f"""
import os
top, how, at = {str(lustre.directory)!r}, {how!r}, None
os.makedirs("a/b")
os.symlink("a", "link")
path = {{"absolute": top + "/a/b/f", "link": "link/b/f", "dots": "a/../a/.//b/f"}}.get(how, "a/b/f")
if how == "dirfd": at, path = os.open("a", os.O_RDONLY), "b/f"
if how == "chdir": os.chdir("a/b"); path = "f"
os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=at))
"""
    done = lustre.python(source)
    assert (done.returncode, done.stderr) == (0, "")
    assert lustre.layout_of("a/b/f") == [osts] and lustre.created("a/b/f").outcome == HIT


@both_ways
def test_cp_tar_and_dd(lustre: LustreMount, apply: str) -> None:
    osts = lustre.some(2)[::-1]
    names = ("copy", "archive", "etc/passwd", "d")
    lustre.map(*(lustre.row(name, osts) for name in names))
    script = "cp /etc/passwd copy; tar cf archive -C / etc/passwd; tar xf archive; dd if=/etc/passwd of=d"
    done = lustre.run(["sh", "-ec", script], TARAZU_APPLY=apply)
    assert done.returncode == 0, done.stderr
    for name in names:
        assert lustre.layout_of(name) == [osts], name
        if name != "archive":
            assert (lustre.directory / name).read_bytes() == Path("/etc/passwd").read_bytes()


@pytest.mark.parametrize(
    ("setting", "outcome"),
    [
        ({"TARAZU_MODE": "observe"}, UNMANAGED),
        ({"TARAZU_MODE": "advise"}, ADVISED),
        ({"TARAZU_EXCLUDE": "*"}, None),
        ({"TARAZU_EXCLUDE_PROGRAMS": "touch"}, None),
        ({"TARAZU_DISABLE": "1"}, None),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else str(v),
)
def test_opt_outs(lustre: LustreMount, setting: dict[str, str], outcome: int | None) -> None:
    lustre.run(["touch", "default"], preload=False)
    default = lustre.layout_of("default")
    lustre.map(lustre.row("f", lustre.some(len(default[0]) + 1)))
    assert lustre.run(["touch", "f"], **setting).returncode == 0
    assert len(lustre.layout_of("f")[0]) == len(default[0])
    assert [c.outcome for c in lustre.creates] == ([] if outcome is None else [outcome])


def test_liblustreapi_accepts_what_is_planned(lustre: LustreMount) -> None:
    layout, _ = lustre.three()
    assert llapi.refusal(layout) == ""


@contextmanager
def refusing(lustre: LustreMount, index: int) -> Iterator[None]:
    """One OST takes no objects for a while, by the administrator's commands."""
    commands = [os.environ.get(f"TARAZU_LUSTRE_{what}", "") for what in ("REFUSE", "ACCEPT")]
    if not all(commands):
        pytest.skip("TARAZU_LUSTRE_REFUSE and TARAZU_LUSTRE_ACCEPT do not say how to make an OST refuse")
    refuse, accept = (shlex.split(command.format(index=index)) for command in commands)
    try:
        subprocess.run(refuse, check=True, capture_output=True)
        wait_for_objects(lustre, index, taken=False)
        yield
    finally:
        subprocess.run(accept, check=True, capture_output=True)
        wait_for_objects(lustre, index, taken=True)


def wait_for_objects(lustre: LustreMount, index: int, taken: bool) -> None:
    """Until the OST takes objects, or takes none: the MDS sees either some seconds after the command."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        lustre.lfs("setstripe", "-c", 1, "-i", index, lustre.directory / "probe")
        (made,) = lustre.layout_of("probe")
        (lustre.directory / "probe").unlink()
        if (made == (index,)) == taken:
            return
    pytest.fail(f"OST {index} is still {'refusing' if taken else 'taking'} objects")


@both_ways
@both_lists
@pytest.mark.parametrize("composite", [False, True])
def test_an_ost_that_refuses_at_creation(
    lustre: LustreMount, apply: str, lists: str, composite: bool
) -> None:
    need(lustre, 4)
    layout, osts = lustre.three()
    bad = osts[1][1]
    lustre.map(lustre.row("f", *osts, layout=layout) if composite else lustre.row("f", osts[1]))
    with refusing(lustre, bad):
        done = lustre.same("f", TARAZU_APPLY=apply, TARAZU_LISTS=lists)
    assert done.status == 0 and done.content is not None and done.content.endswith(b"third")
    outcome = lustre.created("f").outcome
    assert outcome == REFUSED if not composite else outcome == HIT if lists == "hints" else outcome == PARTLY
    assert bad not in {index for part in lustre.layout_of("f")[:2] for index in part}


@both_ways
@both_lists
def test_an_ost_that_refuses_at_the_first_write_of_a_later_component(
    lustre: LustreMount, apply: str, lists: str
) -> None:
    need(lustre, 4)
    layout, osts = lustre.three()
    lustre.map(lustre.row("f", *osts, layout=layout))
    context = refusing(lustre, osts[1][0])
    try:
        done = lustre.see(
            True,
            "f",
            "os.O_RDWR | os.O_EXCL",
            between=context.__enter__,
            TARAZU_APPLY=apply,
            TARAZU_LISTS=lists,
        )
    finally:
        context.__exit__(None, None, None)
    assert done.status == 0 and "write" not in done.output
    assert done.content is not None and done.content.endswith(b"third")
