"""Threads, forks, signals, other preloaded libraries: a placed program behaves as it does without the library."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.soak

Placed = Any
Runs = Any
HIT, LATE, RACED = 1, 2, 7
JEMALLOC = next(Path("/usr/lib").glob("*/libjemalloc.so.2"), None)


def clean(placed: Placed) -> None:
    for entry in list(placed.mount.iterdir()):
        subprocess.run(["rm", "-r", entry], check=True)


def crowd_map(placed: Placed, count: int) -> None:
    own = (placed.row(f"/own.{i}", (i % 8,)) for i in range(count))
    placed.map(*own, placed.row("/shared", *placed.three_lists, layout=placed.three_parts))


def check_crowd(placed: Placed, count: int) -> None:
    assert (placed.mount / "shared").read_bytes() == b"".join(
        bytes([1 + i % 100]) * 512 for i in range(count)
    )
    # A record that cannot be written while a starved thread holds the spool is counted as dropped, never waited for.
    made = [c for c in placed.creates if c.key != "/by-handler"]
    dropped = sum(s.dropped for s in placed.spools)
    assert (
        count + 1 <= len(made) + dropped and len(made) <= count + 2
    )  # who joined before the record of the maker
    # Nor is a map waited for that a starved thread is reading: such a create is late, and Lustre's own layout holds.
    outcomes = {c.key: c.outcome for c in made}
    assert set(outcomes.values()) <= {HIT, RACED, LATE}
    placed_names = [key for key, outcome in outcomes.items() if outcome == HIT and key != "/shared"]
    assert len(placed_names) >= 0.8 * count - dropped
    assert all(placed.osts(key[1:]) == [[int(key[5:]) % 8]] for key in placed_names[::7])
    if outcomes.get("/shared") == HIT:
        assert placed.osts("shared") == [list(o) for o in placed.three_lists]


@pytest.mark.parametrize("record", ["light", "full"])
def test_hundreds_of_threads(placed: Placed, compiled: Any, record: str) -> None:
    crowd_map(placed, 300)
    done = placed([compiled("crowd.c"), "300"], TARAZU_RECORD=record)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    check_crowd(placed, 300)


def test_signal_handlers_that_create_files_anywhere(plain: Runs, compiled: Any) -> None:
    """Also inside the library itself. What a handler does there is not recorded; nothing else is lost."""
    done = plain([compiled("crowd.c"), "200", "everywhere"], TARAZU_RECORD="full")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    made = [c.key for c in plain.creates if c.key != "/by-handler"]
    assert len(made) <= 201 <= len(made) + sum(s.dropped for s in plain.spools)


@pytest.mark.parametrize("mode", ["observe", "place"])
def test_calls_that_a_signal_interrupts_end_as_without(plain: Runs, compiled: Any, mode: str) -> None:
    os.mkfifo(plain.mount / "pipe")
    program = compiled("signals.c")
    bare = plain.bare([program])
    done = plain([program], TARAZU_MODE=mode, TARAZU_RECORD="full")
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert done.stdout.count(" -1 4\n") >= 7


def test_errno_and_results_of_a_placed_program(placed: Placed, compiled: Any) -> None:
    program = compiled("errors.c")
    names = ("f", "c", "g", "h", "k", "f/g")
    placed.map(*(placed.row(f"/{name}", (i, i + 1)) for i, name in enumerate(names)))
    bare = placed.bare([program])
    clean(placed)
    for apply in ("direct", "llapi"):
        done = placed([program], TARAZU_APPLY=apply, TARAZU_RECORD="full")
        assert (done.returncode, done.stderr) == (bare.returncode, bare.stderr) == (0, "")
        assert done.stdout == bare.stdout
        assert {c.key for c in placed.creates if c.outcome == HIT} == {"/f", "/c", "/g", "/k"}
        clean(placed)


def test_children_of_every_kind_are_placed(placed: Placed, compiled: Any) -> None:
    """fork, vfork, posix_spawn, system and a bare clone."""
    names = ("kept", "cloned", "after")
    placed.map(*(placed.row(f"/{name}", (i + 2, i)) for i, name in enumerate(names)))
    done = placed([compiled("spawn.c")])
    assert (done.returncode, done.stderr) == (0, "")
    assert [placed.osts(n) for n in names] == [[[2, 0]], [[3, 1]], [[4, 2]]]
    assert {c.key: c.outcome for c in placed.creates} == {f"/{n}": HIT for n in names}
    names = ("forked", "spawned", "system", "popened")
    placed.map(*(placed.row(f"/{name}", (i + 2, i)) for i, name in enumerate(names)))
    source = """
import os, subprocess
if os.fork() == 0:
    open("forked", "x").close()
    os._exit(0)
os.wait()
os.waitpid(os.posix_spawnp("touch", ["touch", "spawned"], os.environ), 0)
os.system("echo x > system")
subprocess.run(["touch", "popened"], close_fds=False, check=True)
"""
    assert placed.python(source).stderr == ""
    assert [placed.osts(n) for n in names] == [[[2, 0]], [[3, 1]], [[4, 2]], [[5, 3]]]


def test_an_environment_that_the_program_empties_ends_it(placed: Placed) -> None:
    """A child without LD_PRELOAD is left alone; one whose settings went away records and places nothing."""
    placed.map(placed.row("/f", (3, 1)), placed.row("/g", (3, 1)))
    assert placed(["env", "-i", "/usr/bin/touch", "f"]).returncode == 0
    assert placed(["env", "-u", "TARAZU_MAP", "-u", "TARAZU_SPOOL", "touch", "g"]).returncode == 0
    assert placed.creates == [] and len(placed.osts("g")[0]) == 1


@pytest.mark.skipif(JEMALLOC is None, reason="needs libjemalloc2")
@pytest.mark.parametrize("order", ["before", "behind"])
@pytest.mark.parametrize("program", ["crowd", "python"])
def test_with_jemalloc(placed: Placed, compiled: Any, order: str, program: str) -> None:
    parts = [str(JEMALLOC), placed.library] if order == "before" else [placed.library, str(JEMALLOC)]
    preload = " ".join([*parts, placed.behind])
    if program == "crowd":
        crowd_map(placed, 100)
        done = placed([compiled("crowd.c"), "100"], LD_PRELOAD=preload, TARAZU_RECORD="full")
        assert (done.returncode, done.stderr) == (0, "")
        check_crowd(placed, 100)
    else:
        placed.map(placed.row("/f", (3, 1, 5)))
        source = "f = open('f', 'w'); f.write('x' * 100000); f.close(); print(open('/proc/self/maps').read())"
        done = placed.python(source, LD_PRELOAD=preload)
        assert (done.returncode, done.stderr) == (0, "") and "libjemalloc" in done.stdout
        assert placed.osts("f") == [[3, 1, 5]] and placed.create("/f").outcome == HIT


def test_a_wrapper_of_the_same_functions_before_and_behind(placed: Placed, compiled: Any) -> None:
    """As darshan-runtime is one: it sees the program's calls in either order."""
    counter = compiled("counter.c", "-shared", "-fPIC", "-ldl")
    for name, parts in (("f", [counter, placed.library]), ("g", [placed.library, counter])):
        placed.map(placed.row(f"/{name}", (3, 1, 5)))
        preload = " ".join([*map(str, parts), placed.behind])
        source = f"f = open({name!r}, 'wb'); f.write(bytes(3 << 16)); f.close()"
        done = placed.python(source, LD_PRELOAD=preload)
        assert done.returncode == 0 and done.stderr.strip().isdigit()
        assert placed.osts(name) == [[3, 1, 5]] and placed.close(f"/{name}").size == 3 << 16


def test_a_descriptor_limit_is_reached_where_it_is_without(placed: Placed) -> None:
    placed.map(*(placed.row(f"/f{i}", (i % 8, (i + 1) % 8)) for i in range(40)))
    source = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
made = []
try:
    while True:
        made.append(os.open(f"f{len(made)}", os.O_CREAT | os.O_WRONLY, 0o644))
except OSError as error:
    print(len(made), made[-1], error.errno)
"""
    bare = placed.bare(["python3", "-S", "-c", source])
    clean(placed)
    done = placed(["python3", "-S", "-c", source])
    assert (done.stdout, done.stderr) == (bare.stdout, bare.stderr)
    assert done.stdout.split()[2] == "24"
    assert {c.outcome for c in placed.creates} == {HIT}


def test_file_capabilities_make_it_inert(placed: Placed) -> None:
    """The kernel marks such a program as it marks set-uid ones; the loader drops the preload."""
    if os.geteuid() != 0:
        pytest.skip("only root can give capabilities")
    program = placed.work / "touch"
    program.write_bytes(Path("/usr/bin/touch").read_bytes())
    program.chmod(0o755)
    # VFS_CAP_REVISION_2 with the effective bit; permitted: CAP_DAC_OVERRIDE
    os.setxattr(program, "security.capability", bytes.fromhex("0100000202000000000000000000000000000000"))
    placed.map(placed.row("/f", (3, 1)))
    for above in [placed.work, *list(placed.work.parents)[:3]]:
        above.chmod(above.stat().st_mode | 0o011)
    placed.mount.chmod(0o777)
    placed.spool_directory.mkdir()
    placed.spool_directory.chmod(0o777)
    try:
        done = subprocess.run(
            [program, "f"], env=placed.environ(), cwd=placed.mount, user=65534, group=65534,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        placed.mount.chmod(0o755)
    assert (done.returncode, (placed.mount / "f").exists()) == (0, True)
    assert placed.spools == []
