"""An OST index that the file system does not have can bring an MDS down: leader and library both refuse it.

The emulated MDS notes such a request and is down from then on; `crashed()` says so. Never tried on a real mount.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tarazu import native
from tarazu.config import Settings
from tarazu.errors import TarazuError
from tarazu.lustre import EOF
from tarazu.model import Component, FileName, JobStep, Layout
from tarazu.run.plan.accepted import Plans
from tarazu.run.plan.asking import PlanQuestion
from tarazu.run.plan.map_writer import MapWriter
from tarazu.run.plan.waiting import Waiting
from tarazu.sim.testbed import Testbed
from tarazu.stats import client
from tarazu.store.control import write_control
from tarazu.wire.local import PlannedFile, PlanReply

Placed = Any
MISS = 3
MIB = 1 << 20
PLAIN = Layout((Component(0, EOF, MIB, 3),))
LATE = Layout((Component(0, MIB, MIB, 1), Component(MIB, EOF, MIB, 3)), composite=True)
WRONG: dict[str, tuple[Layout, tuple[tuple[int, ...], ...]]] = {
    "first of a list": (PLAIN, ((8, 1, 2),)),
    "inside a list": (PLAIN, ((1, 8, 2),)),
    "last of a list": (PLAIN, ((1, 2, 65000),)),
    "late list": (LATE, ((0,), (1, 99, 2))),
    "start hint": (LATE, ((0,), (99,))),
    "first component": (LATE, ((8,), (1, 2, 3))),
}


def crafted(placed: Placed, layout: Layout, osts: Sequence[Sequence[int]]) -> None:
    """A map that no writer makes: its header tells the true number of OSTs, its row does not keep to it."""
    honest = tuple(tuple(index % 8 for index in part) for part in osts)
    flat = [index for part in osts for index in part]
    path = placed.map(placed.row("/f", *honest, layout=layout), ost_count=8)
    data = path.read_bytes()
    listed = b"".join((index % 8).to_bytes(2, "little") for index in flat)
    assert data.count(listed, 128) >= 1
    at = data.rindex(listed, 0, len(data))
    bad = b"".join(index.to_bytes(2, "little") for index in flat)
    path.write_bytes(data[:at] + bad + data[at + len(bad) :])


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("apply", ["direct", "llapi"])
@pytest.mark.parametrize("lists", ["instantiate", "hints"])
def test_the_library_sends_nothing(placed: Placed, wrong: str, apply: str, lists: str) -> None:
    crafted(placed, *WRONG[wrong])
    source = (
        "import os; f = os.open('f', 66, 0o644); print(os.pwrite(f, b'x', 0), os.pwrite(f, b'x', 3 << 20))"
    )
    done = placed.python(source, TARAZU_APPLY=apply, TARAZU_LISTS=lists)
    assert (done.stdout, done.stderr) == ("1 1\n", "")
    assert placed.create("/f").outcome == MISS
    assert len(placed.osts("f")[0]) == 1  # the default layout
    assert placed.bed.crashed() is None


class Here:
    """The plans of a step on a testbed's client."""

    def __init__(self, bed: Testbed, directory: Path) -> None:
        mount = client.Mount(str(bed.client_mount()), bed.fs_name)
        step = JobStep(fs_name=bed.fs_name, uid=0, application="x", job_id="", ranks=1, nodes=1, start_s=0.0)
        directory.mkdir()
        write_control(directory)
        asking = PlanQuestion(
            Settings(), step, [mount], str(bed.client_root()), place=True, waiting=Waiting()
        )
        self.plans = Plans(asking, MapWriter(directory))
        self.fs = client.file_system(bed.fs_name, str(bed.client_root()))

    def accept(self, layout: Layout, osts: tuple[tuple[int, ...], ...]) -> None:
        names = native.template("/f")
        file = PlannedFile(1, FileName("/f", names.precise, names.loose, False, -1, 0, 0), 8 * MIB, 0, osts)
        self.plans.accept(PlanReply(status="planned", layouts=(layout,), files=(file,)), self.fs, guess=False)


@pytest.mark.parametrize("wrong", WRONG)
def test_the_leader_writes_no_map(shared_bed: Testbed, tmp_path: Path, wrong: str) -> None:
    here = Here(shared_bed, tmp_path / "maps")
    assert here.fs.osts == frozenset(range(8))
    with pytest.raises(TarazuError, match=r"plan: expected OST indices that lustre has, found \[\d+\]"):
        here.accept(*WRONG[wrong])
    assert (here.plans.generation, here.plans.planned_files) == (0, 0)
    assert not list((tmp_path / "maps").glob("map.*"))


def test_a_plan_in_which_one_file_is_wrong_is_refused_as_a_whole_and_the_next_is_taken(
    shared_bed: Testbed, tmp_path: Path
) -> None:
    here = Here(shared_bed, tmp_path / "maps")
    with pytest.raises(TarazuError):
        here.accept(*WRONG["late list"])
    here.accept(PLAIN, ((1, 2, 3),))
    assert here.plans.generation == 1


def test_gaps_in_the_numbers_are_seen_by_the_leader(shared_bed: Testbed, tmp_path: Path) -> None:
    """Removed OSTs leave gaps: the library knows the highest number only, the leader knows each."""
    here = Here(shared_bed, tmp_path / "maps")
    here.fs = client.FileSystem("lustre", frozenset({0, 1, 2, 7}), frozenset({0, 1, 2, 7}))
    for bad, good in itertools.product((3, 6), (0, 7)):
        with pytest.raises(TarazuError, match=f"found \\[{bad}\\]"):
            here.accept(PLAIN, ((good, bad, 1),))
    here.accept(PLAIN, ((7, 0, 1),))
    assert (tmp_path / "maps" / "map.1").exists()
