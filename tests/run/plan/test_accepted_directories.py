"""Directories of a plan in the map: only on MDTs that exist, of the newest plans, also where no file is placed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tarazu.config import Settings
from tarazu.errors import TarazuError
from tarazu.model import FileName
from tarazu.run.plan.accepted import PLANS_OF_DIRECTORIES, Plans
from tarazu.run.plan.asking import PlanQuestion
from tarazu.run.plan.map_writer import MapWriter
from tarazu.stats.client import FileSystem, Mount, file_system
from tarazu.store.control import write_control
from tarazu.store.placement_map import PlacementMap, read_map
from tarazu.wire import local
from tests.run.plan.conftest import STEP, reply

FS = FileSystem("lustre", frozenset(range(4)), frozenset(range(4)), {}, mdts=frozenset({0, 2}))


@pytest.fixture
def plans(tmp_path: Path) -> Plans:
    write_control(tmp_path)
    asking = PlanQuestion(Settings(), STEP, [Mount("/mnt", "lustre")], "/", place=True)
    return Plans(asking, MapWriter(tmp_path))


def made(number: int, mdt: int = 2) -> local.PlannedDirectory:
    key = f"/out.{number}"
    return local.PlannedDirectory(100_000 + number, FileName(key, key, "/out.{n}", False, 0, 0, number), mdt)


def newest(plans: Plans) -> PlacementMap:
    return read_map(plans.maps.directory / f"map.{plans.generation}")


def test_directories_alone_make_a_map(plans: Plans) -> None:
    plans.accept(
        local.PlanReply("planned", plan_id=1, request_id="r", directories=(made(1),)), FS, guess=False
    )
    assert [(d.row_id, d.mdt, d.mdt_count) for d in newest(plans).directories] == [(100_001, 2, 3)]
    assert newest(plans).entries == () and plans.request_ids == ["r"] and plans.placed_directories == 1


def test_files_and_directories_are_in_one_map_and_old_plans_directories_go(plans: Plans) -> None:
    for number in range(PLANS_OF_DIRECTORIES + 3):
        plan = msgspec.structs.replace(reply(number), directories=(made(number),))
        plans.accept(plan, FS, guess=False)
    rows = newest(plans)
    last = PLANS_OF_DIRECTORIES + 2
    assert [d.row_id - 100_000 for d in rows.directories] == list(
        range(last - PLANS_OF_DIRECTORIES + 1, last + 1)
    )
    assert rows.entries


def test_an_mdt_that_does_not_exist_is_never_named(plans: Plans) -> None:
    with pytest.raises(TarazuError, match=r"expected MDT indices that lustre has, found \[1\]"):
        plans.accept(local.PlanReply("planned", directories=(made(1, mdt=1),)), FS, guess=False)
    assert plans.generation == 0


def test_the_client_knows_its_active_mdts(tmp_path: Path) -> None:
    for index, active in ((0, "1"), (1, "0"), (10, "1")):
        directory = tmp_path / f"sys/fs/lustre/mdc/lustre-MDT{index:04x}-mdc-ffff88810f466800"
        directory.mkdir(parents=True)
        (directory / "active").write_text(f"{active}\n")
    (tmp_path / "sys/fs/lustre/mdc/other-MDT0003-mdc-ffff88810f466800").mkdir()
    assert file_system("lustre", tmp_path).mdts == {0, 10}
