"""What recording costs a process that makes one file, or none: system calls and page faults beside a bare one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tarazu.run import directories
from tarazu.store.control import write_control

Runs = Any
MOST_CALLS = {"made": 64, "none": 21}
"""Beside a bare process: 58 and 18 where this was written (before: 156), 8 of them the loader's for the library."""
MOST_FAULTS = {"made": 34, "none": 24}
"""20 and 12 where this was written, to the end of the process; the kernel maps what lies around a page as it likes."""
ROUNDS = 5


@pytest.fixture
def step(plain: Runs) -> Runs:
    """A process of a step on its leader's node, and not the first one there."""
    maps = plain.work / "maps"
    maps.mkdir()
    write_control(maps)
    plain.spool_directory.mkdir(mode=0o700)
    found = directories.Directories.__new__(directories.Directories)
    found.spool_here, found.map_here = plain.spool_directory, maps
    stop = str(plain.work / "stop" / "file")
    plain.environment |= {"TARAZU_MAP": str(maps), "TARAZU_STOP": stop}
    plain.environment["TARAZU_HERE"] = found.found_here(stop)
    return plain


def calls(step: Runs, argv: list[str], environ: dict[str, str], preload: str) -> int:
    trace = step.work / "trace"
    options = ["strace", "-o", str(trace), "-E", f"LD_PRELOAD={preload}"]
    if not preload:
        options[-1] = "LD_PRELOAD"
    pid = os.posix_spawnp("strace", [*options, *argv], environ)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return sum("(" in line for line in trace.read_text().splitlines())


def faults(argv: list[str], environ: dict[str, str]) -> int:
    pid = os.posix_spawn(argv[0], argv, environ)
    _, status, used = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return used.ru_minflt


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("what", ["made", "none"])
def test_what_recording_costs_a_process(step: Runs, compiled: Any, what: str) -> None:
    if " " in step.library:
        pytest.skip("behind a sanitizer's runtime")
    file = step.mount / "f"
    argv = [str(compiled("one_file.c")), *([str(file)] if what == "made" else [])]
    ours = step.environ()
    bare = {k: v for k, v in ours.items() if k not in ("LD_PRELOAD", "TARAZU_HERE")}
    faults(argv, ours)  # the first process of a node makes what all share

    def least(count: Any) -> int:
        numbers = []
        for _ in range(ROUNDS):
            file.unlink(missing_ok=True)
            numbers.append(count())
        return min(numbers)

    traced = {k: v for k, v in ours.items() if k != "LD_PRELOAD"}
    more_calls = least(lambda: calls(step, argv, traced, step.library)) - least(
        lambda: calls(step, argv, bare, "")
    )
    more_faults = least(lambda: faults(argv, ours)) - least(lambda: faults(argv, bare))
    made = 2 * ROUNDS + 1 if what == "made" else 0
    assert [c.key for c in step.creates] == ["/f"] * made
    assert more_calls <= MOST_CALLS[what], more_calls
    assert more_faults <= MOST_FAULTS[what], more_faults


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_step_whose_spools_are_full_does_not_ask_for_memory_at_each_file(step: Runs) -> None:
    """Each open and each close asked again: in a small control group 28 calls, and four times the time of the job."""
    if " " in step.library:
        pytest.skip("behind a sanitizer's runtime")
    files = 1500
    source = "import os, sys\nfor i in range(int(sys.argv[2])): os.close(os.open(f'{sys.argv[1]}.{i}', os.O_CREAT))"
    argv = ["/usr/bin/python3", "-c", source, str(step.mount / "f"), str(files)]

    def made(**limit: str) -> int:
        for path in step.mount.glob("f.*"):
            path.unlink()
        shutil.rmtree(step.spool_directory)
        step.spool_directory.mkdir(mode=0o700)
        environ = {k: v for k, v in step.environ(**limit).items() if k not in ("LD_PRELOAD", "TARAZU_HERE")}
        return calls(step, argv, environ, step.library)

    enough = made()
    full = made(TARAZU_SPOOL_KIB="100")
    assert len(step.creates) < files
    assert full - enough < files


def touch(plain: Runs, here: str) -> None:
    pid = os.posix_spawnp("touch", ["touch", str(plain.mount / "f")], plain.environ(TARAZU_HERE=here))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def found_of(directory: Path) -> str:
    found = directory.stat()
    return f"{found.st_dev}:{found.st_ino}"


@pytest.mark.parametrize("how", ["right", "another directory", "another host", "no numbers", "rubbish"])
def test_what_the_leader_has_found_is_believed_where_it_is_so(plain: Runs, how: str) -> None:
    plain.spool_directory.mkdir(mode=0o700)
    host = os.uname().nodename
    here = {
        "right": f"{host}:{found_of(plain.spool_directory)}:ext4:1:tmpfs",
        "another directory": f"{host}:{found_of(plain.work)}:::",
        "another host": f"x{host}:{found_of(plain.spool_directory)}:nfs:1:nfs",
        "no numbers": f"{host}:x:y:z",
        "rubbish": ":" * 2000,
    }
    touch(plain, here[how])
    assert [c.key for c in plain.creates] == ["/f"]


def test_a_spool_directory_that_others_can_change_is_not_used_though_the_leader_named_it(
    plain: Runs,
) -> None:
    place = plain.spool_directory
    place.mkdir(mode=0o700)
    place.chmod(0o777)
    touch(plain, f"{os.uname().nodename}:{found_of(place)}:::")
    assert not list(place.iterdir())


def test_a_link_in_the_place_of_the_spool_directory_is_not_followed_though_it_leads_there(
    plain: Runs,
) -> None:
    moved = plain.work / "moved"
    moved.mkdir(mode=0o700)
    plain.spool_directory.symlink_to(moved)
    touch(plain, f"{os.uname().nodename}:{found_of(moved)}:::")
    assert not list(moved.iterdir())
