"""Directories: recorded, made on the MDT that the map says, and otherwise as without the library."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tarazu.sim.testbed import Testbed, down, up
from tarazu.store.placement_map import DirectoryRow
from tests.map_rows import directory_row
from tests.preload.conftest import Placed
from tests.within_reach import interpreter

Runs = Any
UNMANAGED, HIT, LATE, MISS, REFUSED, ADVISED, SKIPPED, RACED = range(8)
MDTS = 4
GETSTRIPE = 241
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


@pytest.fixture(scope="module")
def several_mdts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    directory = tmp_path_factory.mktemp("mdts") / "tb"
    bed = up(directory, osss=1, osts_per_oss=2, clients=1, interval_s=60, sparse=False, mdts=MDTS)
    bed.mount.chmod(0o777)
    yield bed
    assert bed.crashed() is None
    down(directory)


@pytest.fixture
def dne(several_mdts: Testbed, tmp_path: Path) -> Iterator[Placed]:
    for directory in (several_mdts.directory, tmp_path):
        within_reach(directory)
    yield Placed(several_mdts, tmp_path)
    several_mdts.clear()
    for index in range(MDTS):
        several_mdts.set_mdt(index, inactive=False, no_create=False, away=False)
    several_mdts.set_mdt_wait(0)
    allow(several_mdts, 0)


def within_reach(directory: Path) -> None:
    """Of any user; each pytest that starts takes the place of all their directories away again."""
    for each in (directory, *directory.parents):
        if each != Path("/") and not each.stat().st_mode & 0o001:
            each.chmod(each.stat().st_mode | 0o011)


def allow(bed: Testbed, gid: int) -> None:
    """Who may say on which MDT a directory lies: -1 all, 0 only root, else a group."""
    for path in bed.mds_root.glob("sys/fs/lustre/mdt/*/enable_remote_dir_gid"):
        path.write_text(f"{gid}\n")


def rows(*keys: str, mdts: Sequence[int] = (1, 2, 3), **names: Any) -> list[DirectoryRow]:
    return [directory_row(key, mdts[i % len(mdts)], row_id=i, **names) for i, key in enumerate(keys)]


def mkdirs(dne: Placed) -> list[int]:
    """What each MDT has made so far."""
    return [sum(who["mkdir"] for who in dne.bed.mds.mdt_done(i)) for i in range(MDTS)]


def as_nobody(dne: Placed, argv: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    """A program of an ordinary user, whose spools are its own."""
    shutil.rmtree(dne.spool_directory, ignore_errors=True)
    dne.spool_directory.mkdir(mode=0o700)
    os.chown(dne.spool_directory, NOBODY, NOBODY)
    return subprocess.run(
        [*AS_NOBODY, *argv], env=dne.environ(), cwd=dne.mount, capture_output=True, text=True, timeout=300,
        errors="surrogateescape", check=False,
    )  # fmt: skip


# ---- recording


def test_each_directory_that_is_made_is_recorded(plain: Runs) -> None:
    source = """
import os
os.mkdir("a"); os.mkdir("a/b", 0o700)
fd = os.open("a", os.O_RDONLY); os.mkdir("c", dir_fd=fd)
os.chdir("a"); os.mkdir("../d"); os.mkdir("b/../e///")
os.makedirs("f/g/h")
"""
    assert plain.python(source).stderr == ""
    assert [d.key for d in plain.directories] == [
        "/a", "/a/b", "/a/c", "/d", "/a/e", "/a/f", "/a/f/g", "/a/f/g/h",
    ]  # fmt: skip
    assert {(d.flags, d.outcome, d.mdt, d.fs) for d in plain.directories} == {(0, UNMANAGED, -1, "lustre")}
    assert plain.creates == []


def test_what_is_there_is_recorded_once_for_each_rank_of_a_node(plain: Runs) -> None:
    """As `mkdir -p` asks for all that lead to it."""
    (plain.mount / "a").mkdir()
    for _ in range(3):
        done = subprocess.run(
            ["sh", "-c", "mkdir -p a/b; mkdir -p a/b; mkdir a/b"],
            env=plain.environ(), cwd=plain.mount, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
    made = Counter((d.key, d.flags) for d in plain.directories)
    assert made[("/a/b", 0)] == 1 and made[("/a/b", 1)] == 1 and sum(made.values()) <= 3


@pytest.mark.parametrize(
    "path", ["missing/a", "file/a", "file/", ".", "..", "", "x" * 256, "/proc/a", "../outside"]
)
def test_what_is_not_made_or_elsewhere_is_not_recorded(plain: Runs, path: str) -> None:
    (plain.mount / "file").touch()
    plain.python("import os, sys\ntry: os.mkdir(sys.argv[1])\nexcept OSError: pass", path)
    assert [d for d in plain.directories if not d.flags] == []


def test_directories_are_numbered_apart_from_files_and_a_failure_takes_no_number(plain: Runs) -> None:
    source = """
import os
open("x1", "w"); open("x2", "w")
for name in ("missing/y1", "y1", "y1", "y2", "y3"):
    try: os.mkdir(name)
    except OSError: pass
os.rmdir("y2"); os.mkdir("y2"); os.mkdir("y4")
"""
    assert plain.python(source).stderr == ""
    assert {d.key: (d.nth_loose, d.loose) for d in plain.directories} == {
        f"/y{i + 1}": (i, "/y#") for i in range(4)
    }
    assert {c.key: c.nth_loose for c in plain.creates} == {"/x1": 0, "/x2": 1}


def test_recording_costs_no_request(dne: Placed) -> None:
    source = "import os\nfor i in (*range(20), *range(20)): os.makedirs(f'd{i}/e', exist_ok=True)"

    def cost(run: Any) -> dict[str, int]:
        before = dne.bed.mds.requests(), mkdirs(dne)
        assert run().stderr == ""
        after = dne.bed.mds.requests()
        shutil.rmtree(dne.mount / "d0")
        for i in range(1, 20):
            shutil.rmtree(dne.mount / f"d{i}")
        return {k: v - before[0][k] for k, v in after.items()}

    bare = cost(lambda: dne.bare([sys.executable, "-c", source]))
    for mode in ("observe", "place"):
        assert cost(lambda: dne.python(source, TARAZU_MODE=mode)) == bare  # noqa: B023


# ---- placing


def test_a_directory_is_made_where_the_map_says(dne: Placed) -> None:
    dne.map(directories=rows("/a", "/b", "/c", "/c/d"))
    fd = "f = os.open('.', os.O_RDONLY); os.mkdir('b', dir_fd=f)"
    assert dne.python(f"import os; os.mkdir('a'); {fd}; os.makedirs('c/d')").stderr == ""
    assert [dne.bed.mdt(name) for name in ("a", "b", "c", "c/d")] == [1, 2, 3, 1]
    made = {d.key: (d.outcome, d.found, d.row_id, d.mdt, d.generation, d.flags) for d in dne.directories}
    assert made == {
        "/a": (HIT, 1, 0, 1, 1, 0), "/b": (HIT, 1, 1, 2, 1, 0), "/c": (HIT, 1, 2, 3, 1, 0),
        "/c/d": (HIT, 1, 3, 1, 1, 0),
    }  # fmt: skip
    assert not list(dne.mount.glob("**/.tarazu-*"))


def test_a_directory_that_was_placed_holds_nothing_below_to_its_mdt(dne: Placed) -> None:
    """It has no default of its own, which servers since 2.15 set where they are not told otherwise."""
    dne.map(directories=rows("/a"))
    source = "import os; os.mkdir('a'); os.getxattr('a', 'trusted.dmv')"
    assert "No data available" in dne.python(source).stderr and dne.bed.mdt("a") == 1
    below = [f"a/{i}" for i in range(MDTS)]
    assert dne.bare(["mkdir", *below]).returncode == 0
    assert {dne.bed.mdt(name) for name in below} == set(range(MDTS)), "in turn, as below any other"


def test_names_of_the_job_are_found_by_their_template(dne: Placed) -> None:
    dne.map(
        directories=[
            directory_row("/job100/out.3", 2, job_id="100", rank=3),
            directory_row("/step.8", 3, rank=3, n=0),
        ]
    )
    source = "import os; os.mkdir('job4711'); os.mkdir('job4711/out.3'); os.mkdir('step.11')"
    assert dne.python(source, TARAZU_RANK="3", TARAZU_JOB="4711").stderr == ""
    assert (dne.bed.mdt("job4711/out.3"), dne.bed.mdt("step.11")) == (2, 3)
    assert (dne.directory("/job4711/out.3").found, dne.directory("/step.11").found) == (2, 4)


def test_a_file_of_the_same_name_is_no_directory(dne: Placed) -> None:
    dne.map(dne.row("/f", (1,)), directories=rows("/d"))
    assert dne.python("import os; os.mkdir('f'); open('d', 'w')").stderr == ""
    assert dne.directory("/f").outcome == MISS and dne.create("/d").outcome == MISS


def test_only_once_is_a_directory_made(dne: Placed) -> None:
    dne.map(directories=rows("/a"))
    before = mkdirs(dne)
    assert dne.python("import os; os.mkdir('a')").stderr == ""
    assert [now - then for now, then in zip(mkdirs(dne), before)] == [0, 1, 0, 0]


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_a_program_sees_the_same(dne: Placed, compiled: Any, user: str) -> None:
    """Results, errno, modes, groups and access lists of some 340 calls, beside those without the library."""
    program = shutil.copy2(compiled("makers.c"), dne.work)
    command = [*(AS_NOBODY if user == "nobody" else ()), str(program), "t"]
    allow(dne.bed, -1)
    directory = dne.mount / "t"

    def said(preload: str) -> list[bytes]:
        directory.mkdir()
        directory.chmod(0o777)
        shutil.rmtree(dne.spool_directory, ignore_errors=True)
        dne.spool_directory.mkdir(mode=0o700)
        if user == "nobody":
            os.chown(dne.spool_directory, NOBODY, NOBODY)
        environ = dne.environ() | {"LD_PRELOAD": preload}
        done = subprocess.run(
            command, env=environ, cwd=dne.mount, capture_output=True, timeout=300, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.splitlines()

    bare = said(dne.behind)
    made = [f"/{d.relative_to(dne.mount)}" for d in directory.rglob("*") if d.is_dir() and not d.is_symlink()]
    also = (
        "first",
        "second",
        "was",
        "was/in",
        "limited",
        "gone/in",
        "nowrite/a",
        "missing/a",
        "file",
        "link",
        "dangling",
    )
    shutil.rmtree(directory)
    dne.map(directories=rows(*sorted({*made, *(f"/t/{name}" for name in also)})))
    ours = said(f"{dne.library} {dne.behind}")
    assert b"mkdir acl/0.0 (7) 777: 0 4711 mode 40770" in b"\n".join(bare), (
        "the default access list is in force"
    )
    assert [pair for pair in zip(bare, ours) if len(set(pair)) > 1] == [] and len(bare) == len(ours) > 330
    done = [d for d in dne.directories if not d.flags]
    outcomes = Counter(d.outcome for d in done)
    assert outcomes[HIT] > 220 and set(outcomes) == {HIT, REFUSED}, outcomes
    there = [d for d in done if d.outcome == HIT and "/was" not in d.key and (dne.mount / d.key[1:]).is_dir()]
    assert {(d.key, d.mdt) for d in there if dne.bed.mdt(d.key[1:]) != d.mdt} == set()
    assert {d.mdt for d in there} == {1, 2, 3}


def test_of_64_that_race_exactly_one_makes_it(dne: Placed) -> None:
    dne.map(directories=rows(*(f"/d{i}" for i in range(8))))
    source = """
import os, sys, time
made = 0
start = float(sys.argv[1])
for i in range(8):
    while time.time() < start + i * 0.05: pass
    try: os.mkdir(f"d{i}"); print(i)
    except FileExistsError: print(f"there {i}")
"""
    import time

    start = str(time.time() + 6)
    shutil.rmtree(dne.spool_directory, ignore_errors=True)
    ranks = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", source, start], env=dne.environ(TARAZU_RANK=str(rank)), cwd=dne.mount,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(64)
    ]  # fmt: skip
    said = Counter(line for rank in ranks for line in rank.communicate(timeout=300)[0].splitlines())
    assert said == {str(i): 1 for i in range(8)} | {f"there {i}": 63 for i in range(8)}
    assert sorted(p.name for p in dne.mount.iterdir()) == [f"d{i}" for i in range(8)]
    assert [dne.bed.mdt(f"d{i}") for i in range(8)] == [1 + i % 3 for i in range(8)]
    made = [d for d in dne.directories if not d.flags]
    assert sorted(d.key for d in made) == [f"/d{i}" for i in range(8)] and {d.outcome for d in made} == {HIT}
    assert {d.outcome for d in dne.directories if d.flags} == {RACED}


# ---- refusals


def test_who_may_not_choose_asks_once(dne: Placed) -> None:
    """EPERM is the user's for all directories: it is remembered in the process, and told to the step."""
    dne.map(directories=rows(*(f"/d{i}" for i in range(10))))
    source = "import os\nfor i in range(10): os.mkdir(f'd{i}')"
    trace = dne.work / "trace"
    trace.touch()
    trace.chmod(0o666)
    done = as_nobody(
        dne, ["strace", "-f", "-qq", "-e", "trace=openat", "-o", trace, interpreter(NOBODY), "-c", source]
    )
    assert done.returncode == 0 and done.stderr == ""
    opened = [line for line in trace.read_text().splitlines() if '"."' in line and "O_PATH" not in line]
    assert len(opened) == 1, "no second try"
    assert {(d.outcome, d.errno, d.mdt) for d in dne.directories} == {(REFUSED, errno.EPERM, -1)}
    assert sorted(d.row_id for d in dne.directories) == list(range(10))
    assert len(list(dne.mount.iterdir())) == 10


def test_a_group_that_may_choose_does(dne: Placed) -> None:
    allow(dne.bed, NOBODY)
    dne.map(directories=rows("/a"))
    assert as_nobody(dne, ["mkdir", "a"]).stderr == ""
    assert dne.bed.mdt("a") == 1 and dne.directory("/a").outcome == HIT
    assert (dne.mount / "a").stat().st_uid == NOBODY


def test_a_directory_that_forbids_it_says_nothing_of_others(dne: Placed) -> None:
    dne.map(directories=rows("/closed/a", "/b"))
    (dne.mount / "closed").mkdir(mode=0o755)
    allow(dne.bed, -1)
    source = """
import os
try: os.mkdir("closed/a")
except PermissionError: pass
os.mkdir("b")
"""
    assert as_nobody(dne, [interpreter(NOBODY), "-c", source]).stderr == ""
    assert dne.directory("/b").outcome == HIT and [d.key for d in dne.directories] == ["/b"]


@pytest.mark.parametrize("state", ["inactive", "no_create", "away"])
def test_an_mdt_that_takes_none_leaves_it_to_lustre(dne: Placed, state: str) -> None:
    dne.map(directories=rows("/a", "/b", mdts=(2, 1)))
    dne.bed.set_mdt(2, **{state: True})
    dne.bed.set_mdt_wait(0.2)
    assert dne.python("import os; os.mkdir('a'); os.mkdir('b')").stderr == ""
    assert (dne.mount / "a").is_dir() and dne.bed.mdt("b") == 1
    refused = dne.directory("/a")
    assert refused.outcome == REFUSED and refused.errno
    # Where none is made any more Lustre takes another MDT and says nothing: that one is recorded.
    assert refused.mdt == (dne.bed.mdt("a") if state == "no_create" else -1)


def test_an_mdt_that_does_not_exist_is_never_asked_for(dne: Placed) -> None:
    """Neither by a row that says so in spite of its count, nor by a count that is too high for the file system."""
    path = dne.map(directories=rows("/a", mdts=(3,)), mdt_count=4)
    data = bytearray(path.read_bytes())
    at = data.index((3).to_bytes(2, "little") + bytes(6), 128 + 24)
    data[at : at + 2] = (9).to_bytes(2, "little")
    path.write_bytes(data)
    assert dne.python("import os; os.mkdir('a')").stderr == ""
    assert dne.directory("/a").outcome == MISS
    (dne.mount / "a").rmdir()
    dne.map(directories=rows("/a", mdts=(9,)), mdt_count=12)
    assert dne.python("import os; os.mkdir('a')").stderr == ""
    assert (dne.mount / "a").is_dir() and dne.directory("/a").outcome == REFUSED


def test_a_path_that_leads_to_another_file_system_is_left_alone(dne: Placed, on_disk: Path) -> None:
    """What the number of an MDT means there is not known."""
    others = (on_disk, Path("/dev/shm"))
    other = next((each for each in others if each.stat().st_dev != dne.mount.stat().st_dev), None)
    if other is None:
        pytest.skip("needs two file systems")
    outside = other / f"tarazu-other-{os.getpid()}"
    outside.mkdir()
    try:
        dne.map(directories=rows("/d/a"))
        source = f"""
import os
os.mkdir("d"); os.mkdir("d/a"); os.rmdir("d/a"); os.rmdir("d")
os.symlink({str(outside)!r}, "d")
os.mkdir("d/a")
"""
        assert dne.python(source).stderr == ""
        assert (outside / "a").is_dir() and dne.directory("/d/a").outcome == SKIPPED
    finally:
        shutil.rmtree(outside)


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_what_is_not_lustre_is_never_told_to_make_one(dne: Placed) -> None:
    """A mount that is named by mistake: it is asked once what default it has, which only Lustre answers."""
    other = Path("/dev/shm") / f"tarazu-other-{os.getpid()}"
    other.mkdir()
    try:
        dne.map(directories=rows("/a", "/b"))
        trace = dne.work / "trace"
        source = "import os\nfor name in 'ab': os.mkdir(name)"
        program = ["sh", "-c", f'cd {other}; exec {sys.executable} -c "{source}"']
        strace = ["strace", "-f", "-qq", "-e", "trace=ioctl", "-e", "raw=ioctl", "-o", str(trace)]
        done = dne([*strace, *program], TARAZU_MOUNTS=f"{other}=lustre")
        assert done.returncode == 0 and done.stderr == ""
        asked = [
            int(found[1], 16) & 0xFFFF for found in re.finditer(r"ioctl\(\w+, (0x\w+)", trace.read_text())
        ]
        lustre = [number & 0xFF for number in asked if number >> 8 == ord("f")]
        assert lustre == [GETSTRIPE]
        assert sorted(path.name for path in other.iterdir()) == ["a", "b"]
        assert {d.outcome for d in dne.directories} == {SKIPPED}
    finally:
        shutil.rmtree(other)


def test_on_a_read_only_mount_it_is_refused_as_ever(dne: Placed) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("needs mount namespaces")
    dne.map(directories=rows("/a"))
    there = f'"{dne.mount}"'
    script = f"mount --bind {there} {there} && mount -o remount,ro,bind {there} && cd {there} && mkdir a"
    bare = dne.bare(["unshare", "-m", "sh", "-c", script])
    ours = dne(["unshare", "-m", "sh", "-c", script])
    assert (
        bare.returncode == ours.returncode == 1 and "Read-only" in ours.stderr and bare.stderr == ours.stderr
    )
    assert list(dne.mount.iterdir()) == []


# ---- opt-outs


@pytest.mark.parametrize(
    ("setting", "outcome"),
    [
        ({"TARAZU_MODE": "observe"}, UNMANAGED),
        ({"TARAZU_MODE": "advise"}, ADVISED),
        ({"TARAZU_DISABLE": "1"}, None),
        ({"TARAZU_EXCLUDE": "/keep/*:*/a"}, None),
        ({"TARAZU_INCLUDE": "/elsewhere/*"}, None),
        ({"TARAZU_EXCLUDE_PROGRAMS": "python*"}, None),
        ({"TARAZU_MOUNTS": "/nowhere=lustre"}, None),
        ({"TARAZU_MAP": ""}, UNMANAGED),
    ],
    ids=lambda value: next(iter(value.values()), "") if isinstance(value, dict) else "",
)
def test_who_does_not_want_it_gets_none(dne: Placed, setting: dict[str, str], outcome: int | None) -> None:
    assert (
        dne.bare(["mkdir", "-p", "deep/1/2/3"]).returncode == 0
    )  # so far down Lustre takes the parent's MDT
    parents = dne.bed.mdt("deep/1/2/3")
    dne.map(directories=rows("/deep/1/2/3/a", mdts=[(parents + 1) % MDTS]))
    assert dne.python("import os; os.mkdir('deep/1/2/3/a')", **setting).stderr == ""
    assert dne.bed.mdt("deep/1/2/3/a") == parents
    assert [d.outcome for d in dne.directories] == ([] if outcome is None else [outcome])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's stop file counts")
def test_the_sites_stop_file_keeps_directories_where_lustre_puts_them(dne: Placed) -> None:
    stop = dne.work / "etc/stop"
    stop.parent.mkdir(mode=0o755)
    assert dne.bare(["mkdir", "-p", "deep/1/2/3"]).returncode == 0
    parents = dne.bed.mdt("deep/1/2/3")
    dne.map(directories=rows("/deep/1/2/3/a", "/deep/1/2/3/b", mdts=[(parents + 1) % MDTS]))
    stop.touch()
    assert dne.python("import os; os.mkdir('deep/1/2/3/a')", TARAZU_STOP=str(stop)).stderr == ""
    assert dne.bed.mdt("deep/1/2/3/a") == parents and dne.directories == []
    stop.unlink()
    assert dne.python("import os; os.mkdir('deep/1/2/3/b')", TARAZU_STOP=str(stop)).stderr == ""
    assert dne.bed.mdt("deep/1/2/3/b") != parents and dne.directory("/deep/1/2/3/b").outcome == HIT


def test_liblustreapi_is_for_files_alone(dne: Placed) -> None:
    dne.map(directories=rows("/a"))
    assert dne.python("import os; os.mkdir('a')", TARAZU_APPLY="llapi").stderr == ""
    assert dne.bed.mdt("a") == 1 and dne.directory("/a").outcome == HIT


SET_DEFAULT = """
import fcntl, os, struct, sys
count, offset = map(int, sys.argv[1:])
os.mkdir("own")
lum = struct.pack("<IiIIIBBHII16s", 0x0CD30CD0, count, offset & 0xffffffff, 2, 0, 0, 0, 0, 0, 0, b"")
fcntl.ioctl(os.open("own", os.O_RDONLY), 3 << 30 | 48 << 16 | ord("f") << 8 | 246, lum)
"""


@pytest.mark.parametrize(
    ("count", "offset", "outcome"), [(2, -1, SKIPPED), (-1, -1, SKIPPED), (1, 2, SKIPPED), (1, -1, HIT)]
)
def test_a_default_that_somebody_chose_stays(dne: Placed, count: int, offset: int, outcome: int) -> None:
    """`lfs setdirstripe -D -c COUNT -i MDT`: stripes or an MDT of one's own; not one that only says: balance."""
    done = dne.bare([sys.executable, "-c", SET_DEFAULT, str(count), str(offset)])
    assert done.stderr == ""
    dne.map(directories=rows("/own/a", mdts=(3,)))
    before = mkdirs(dne)
    assert dne.python("import os; os.mkdir('own/a')").stderr == ""
    assert dne.directory("/own/a").outcome == outcome
    if outcome == HIT or offset >= 0:
        assert dne.bed.mdt("own/a") == (3 if outcome == HIT else offset)
    assert sum(mkdirs(dne)) == sum(before) + 1


def test_stopped_steps_make_directories_as_before_and_are_partial(dne: Placed) -> None:
    from tarazu.store.control import stop

    dne.map(directories=rows("/a"))
    stop(dne.map_directory, "by hand")
    assert dne.python("import os; os.mkdir('a'); os.mkdir('b')").stderr == ""
    assert dne.directories == [] and (dne.mount / "a").is_dir()


def test_a_map_of_before_places_no_directories(dne: Placed) -> None:
    dne.map(dne.row("/f", (1,)))
    assert dne.python("import os; os.mkdir('a'); open('f', 'w')").stderr == ""
    assert dne.directory("/a").outcome == MISS and dne.create("/f").outcome == HIT


def test_a_map_that_has_run_out_or_comes_late(dne: Placed) -> None:
    dne.map(directories=rows("/a"), expires_s=1)
    assert dne.python("import os; os.mkdir('a')").stderr == ""
    assert dne.directory("/a").outcome == LATE
