"""Many processes create one shared file at the same moment: all succeed, and all report the layout it has."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tarazu import native
from tarazu.store.control import write_control
from tests.mpi import OPENMPI_RUN
from tests.preload.new_files import Placed, both_layouts, put, wanted
from tests.waiting import LONG_S

pytestmark = pytest.mark.soak

HIT, RACED, PARTLY = 1, 7, 8


def check(placed: Placed, ranks: int, step: int, records: int) -> None:
    data = (placed.mount / "s").read_bytes()
    assert len(data) == (ranks - 1) * step + 1000
    assert all(data[r * step : r * step + 1000] == bytes([r + 1]) * 1000 for r in range(ranks))
    made = [c for c in placed.creates if c.key == "/s"]
    assert len(made) == records and {c.outcome for c in made} <= {HIT, RACED, PARTLY}
    actual = placed.osts("s")
    for create in (c for c in made if c.layout):  # who joined notes no large layout
        # What is written meanwhile may instantiate more; what was reported stays.
        said = [list(c.osts) for c in placed.decode(create.layout)]
        assert all(s in ([], a) for s, a in zip(said, actual)) and said[0] == actual[0]


def race(placed: Placed, racer: Path, step: int, environs: Sequence[Mapping[str, str]]) -> None:
    """A rank with each environment opens and writes /s at about the same moment; all must succeed."""
    when = str(time.time() + 0.3)
    running = [
        subprocess.Popen([racer, "s", str(step), when, str(rank)], env=environ, cwd=placed.mount)
        for rank, environ in enumerate(environs)
    ]
    assert [process.wait(LONG_S) for process in running] == [0] * len(environs)


@pytest.mark.skipif(not shutil.which(OPENMPI_RUN), reason="needs Open MPI")
@pytest.mark.parametrize("layout", ["plain", "three"])
@pytest.mark.parametrize("apply", ["direct", "llapi"])
def test_ranks_of_mpirun(placed: Placed, compiled: Any, layout: str, apply: str) -> None:
    lists = ((1, 3, 5, 7),) if layout == "plain" else placed.three_lists
    placed.map(placed.row("/s", *lists, layout=None if layout == "plain" else placed.three_parts))
    racer = compiled("racer.c")
    argv = [OPENMPI_RUN, "--allow-run-as-root", "--oversubscribe", "-np", "8", racer, "s", str(3 << 20)]
    done = placed([*argv, str(time.time() + 0.8)], TARAZU_APPLY=apply)
    assert done.returncode == 0, done.stderr
    check(placed, 8, 3 << 20, records=8)
    assert placed.osts("s") == [list(o) for o in lists]


def test_processes_that_want_different_layouts(placed: Placed, compiled: Any) -> None:
    """Two leaders' maps for one name: one layout wins, nobody loses data (docs/limitations.md)."""
    racer, ranks = compiled("racer.c"), 8
    placed.map(placed.row("/s", *placed.three_lists, layout=placed.three_parts))
    placed.run(["true"], placed.environ())
    first = placed.environ()
    other = placed.work / "other-maps"
    placed.map_directory = other
    other.mkdir()
    write_control(other)
    placed.generation = 0
    placed.map(placed.row("/s", (2, 4), (0,), (7, 6, 5, 3), layout=placed.two_then_four))
    race(placed, racer, 2 << 20, [first | {"TARAZU_MAP": str(other)}, first] * (ranks // 2))
    check(placed, ranks, 2 << 20, records=2)  # its maker's, and once that others of no rank joined


@pytest.mark.parametrize("apply", ["direct", "llapi"])
@pytest.mark.parametrize("state", [{"no_create": True}, {"active": False}])
def test_an_ost_refuses_while_ranks_race(
    placed: Placed, compiled: Any, apply: str, state: dict[str, bool]
) -> None:
    """Between a layout and the replacement of its refused components, nobody's write may fail."""
    placed.bed.set_ost(6, **state)
    placed.map(placed.row("/s", *placed.three_lists, layout=placed.three_parts))
    racer = compiled("racer.c")
    for _ in range(4):
        (placed.mount / "s").unlink(missing_ok=True)
        race(placed, racer, 1 << 20, [placed.environ(TARAZU_APPLY=apply)] * 12)
    assert placed.osts("s")[0] == [0] and 6 not in placed.osts("s")[1]


def test_a_file_whose_maker_died_half_way_is_completed(placed: Placed) -> None:
    """A layout with lists that nobody instantiated: who opens it next does not wait for ever, and can write."""
    placed.map(placed.row("/s", *placed.three_lists, layout=placed.three_parts))
    half = native.encode_lov(placed.three_parts, placed.three_lists)
    make = f"""
import os
fd = os.open("s", os.O_CREAT | os.O_RDWR | os.O_NOCTTY | 0o20000, 0o644)
os.setxattr(fd, "lustre.lov", bytes.fromhex("{half.hex()}"))
"""
    assert placed.bare(["python3", "-c", make]).stderr == ""
    assert placed.osts("s") == [[0], [], []]
    placed.bed.set_ost(6, no_create=True)
    source = "import os; f = os.open('s', 66, 0o644); print(os.pwrite(f, b'x', 2 << 20), os.pwrite(f, b'x', 9 << 20))"
    done = placed.python(source)
    assert (done.stdout, done.stderr) == ("1 1\n", "")
    assert placed.create("/s").outcome == PARTLY
    assert 6 not in placed.osts("s")[1] and len(placed.osts("s")[1]) == 2


def test_a_directory_that_is_replaced_while_threads_make_files_in_it(plain: Any, compiled: Any) -> None:
    """By dup2, as programs put a new log or another place under a number that all threads know."""
    done = plain([compiled("replaced.c")], TARAZU_RECORD="full")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = ("/".join(["", *[letter * 100] * 4]) for letter in "ab")
    made = {c.key for c in plain.creates}
    assert {key.rsplit("/", 1)[0] for key in made} <= {first, second}
    assert [key for key in made if key.endswith("/last")] == [f"{second}/last"]


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
        both = [placed.environ(TESTBED_CLIENT="client1"), placed.environ(TESTBED_CLIENT=client)]
        race(placed, racer, 1 << 20, both * 6)
        assert placed.osts("s") == wanted(placed, parts) and os.listdir(placed.mount) == ["s"]
        assert stat.S_ISREG((placed.mount / "s").stat().st_mode) and (placed.mount / "s").stat().st_nlink == 1
