"""Directories of a plan in the map: only on MDTs that exist, of the newest plans, also where no file is placed."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tarazu.config import Settings
from tarazu.errors import TarazuError
from tarazu.left import MAY_NOT_CHOOSE
from tarazu.model import FileName
from tarazu.run.plan.accepted import PLANS_OF_DIRECTORIES, Plans
from tarazu.run.plan.asking import MANY_FILES_BYTES, PlanQuestion
from tarazu.run.plan.map_writer import MapWriter
from tarazu.run.plan.waiting import Waiting
from tarazu.stats.client import FileSystem, Mount, file_system
from tarazu.store.control import write_control
from tarazu.store.placement_map import PlacementMap, read_map
from tarazu.trace.history import History
from tarazu.trace.records import RunRecord
from tarazu.wire import local
from tests.run.plan.conftest import STEP, reply
from tests.trace.test_history import sample

FS = FileSystem("lustre", frozenset(range(4)), frozenset(range(4)), {}, mdts=frozenset({0, 2}))


@pytest.fixture
def plans(tmp_path: Path) -> Plans:
    write_control(tmp_path)
    asking = PlanQuestion(Settings(), STEP, [Mount("/mnt", "lustre")], "/", place=True, waiting=Waiting())
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


def of_directories(number: int) -> local.PlanReply:
    return local.PlanReply(
        "planned", plan_id=number, request_id=f"r{number}", directories=(made(number),), mdt_cost=1.0
    )


def told(plans: Plans) -> tuple[str, ...]:
    progress = plans.promises.progress()
    return progress.request_ids if progress else ()


def test_a_plan_of_directories_alone_says_that_its_step_lives(plans: Plans) -> None:
    """Else mdsd takes the step for dead after `run.alive_s`, and its creates are nobody's."""
    plans.accept(of_directories(1), FS, guess=False)
    assert [told(plans) for _ in range(3)] == [("r1",)] * 3
    assert plans.promises.request_ids() == (), "there are no OSTs of which news could come"


def test_a_later_plan_of_nothing_does_not_hide_why_directories_were_left(plans: Plans) -> None:
    plans.accept(local.PlanReply("left to Lustre", plan_id=1, mdt_reason=MAY_NOT_CHOOSE), FS, guess=False)
    plans.accept(local.PlanReply("nothing"), FS, guess=False)
    assert plans.mdt_reason == MAY_NOT_CHOOSE


def test_what_is_said_of_directories_is_of_the_plan_that_they_were_made_by(plans: Plans) -> None:
    """A guess comes when they are there, and is of others."""
    plans.accept(of_directories(1), FS, guess=False)
    plans.accept(msgspec.structs.replace(of_directories(2), mdt_cost=9.0), FS, guess=True)
    assert plans.last_directories and plans.last_directories.mdt_cost == 1.0


def test_directories_live_on_when_all_files_are_closed(plans: Plans) -> None:
    plan = msgspec.structs.replace(reply(1, files=2), directories=(made(1),))
    plans.accept(plan, FS, guess=False)
    plans.promises.note({file.row_id: 10 for file in plan.files}, everywhere=True)
    assert [told(plans) for _ in range(2)] == [("request1",)] * 2


def test_a_newer_guess_stands_for_the_directories_of_an_older_one(plans: Plans) -> None:
    for number in (1, 2):
        plans.accept(of_directories(number), FS, guess=True)
    assert told(plans) == ("r2",)
    plans.accept(of_directories(3), FS, guess=False)
    assert told(plans) == ("r2", "r3")


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


class Clientd(PlanQuestion):
    """Answers these, in turn."""

    asked: list[tuple[str, int]]
    answers: list[local.PlanReply]

    def in_parts(self, history: History) -> bool:
        return True

    def from_history(
        self, history: History, from_s: float, part: str = "", **details: int
    ) -> tuple[local.PlanReply, FileSystem]:
        self.asked.append((part, details["attempt"]))
        return self.answers.pop(0), FS

    def from_run(
        self, run_so_far: RunRecord, *, choose_mdts: bool = True, **details: int
    ) -> tuple[local.PlanReply, FileSystem]:
        self.asked.append(("MDTs too" if choose_mdts else "files alone", details["attempt"]))
        return local.PlanReply("nothing"), FS


@pytest.fixture
def parted(tmp_path: Path) -> Plans:
    write_control(tmp_path)
    asking = Clientd(Settings(), STEP, [Mount("/mnt", "lustre")], "/", place=True, waiting=Waiting())
    asking.asked, asking.answers = [], []
    return Plans(asking, MapWriter(tmp_path))


def ask(plans: Plans, attempt: int, *answers: local.PlanReply) -> list[tuple[str, int]]:
    asking = plans._asking
    assert isinstance(asking, Clientd)
    asking.asked.clear()
    asking.answers[:] = answers
    plans.ask(History("/nowhere"), 0.0, attempt)
    return list(asking.asked)


DIRECTORIES = local.PlanReply(
    "planned",
    plan_id=1,
    request_id="r",
    directories=(made(1),),
    until_s=60.0,
    next_s=30.0,
    part="directories",
)
FILES = msgspec.structs.replace(reply(0), until_s=60.0, part="files")


def test_directories_of_many_files_are_in_the_map_before_the_files(parted: Plans) -> None:
    assert ask(parted, 0, DIRECTORIES, FILES) == [("directories", 0), ("files", 0)]
    assert newest(parted).directories and newest(parted).entries and parted.generation == 2
    assert parted.next_s == 30.0, "when more directories come, also where no more files do"


def test_directories_that_have_come_are_not_asked_for_again(parted: Plans) -> None:
    """Their creates would be promised twice."""
    busy = local.PlanReply("declined", "mdsd is busy", part="files")
    assert ask(parted, 0, DIRECTORIES, busy) == [("directories", 0), ("files", 0)]
    assert ask(parted, 1, FILES) == [("files", 1)]
    assert newest(parted).directories and newest(parted).entries
    assert ask(parted, 0, DIRECTORIES, FILES) == [("directories", 0), ("files", 0)]


def test_a_clientd_of_before_answers_with_all_at_once(parted: Plans) -> None:
    whole = msgspec.structs.replace(reply(0), directories=(made(1),))
    assert ask(parted, 0, whole) == [("directories", 0)]
    assert newest(parted).directories and newest(parted).entries


def test_who_may_not_choose_is_not_asked_for_while_the_run_goes_on(parted: Plans) -> None:
    """The run itself shows no refusal, as nothing was asked."""
    asking = parted._asking
    assert isinstance(asking, Clientd)
    parted.ask_from(sample(), 0)
    ask(parted, 0, local.PlanReply("left to Lustre", plan_id=1, mdt_reason=MAY_NOT_CHOOSE))
    asking.asked.clear()
    parted.ask_from(sample(), 0)
    assert asking.asked == [("files alone", 0)]


def test_parts_are_for_many_files_and_several_mdts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in (0, 1):
        (tmp_path / f"sys/fs/lustre/mdc/lustre-MDT{index:04x}-mdc-ffff88810f466800").mkdir(parents=True)
    asking = PlanQuestion(
        Settings(), STEP, [Mount("/mnt", "lustre")], str(tmp_path), place=True, waiting=Waiting()
    )
    history = History(tmp_path / "history")
    assert not asking.in_parts(history)
    run = msgspec.structs.replace(sample(application=STEP.application), step=STEP)
    path = history.append(run)
    assert not asking.in_parts(history)
    os.truncate(path, MANY_FILES_BYTES + 1)
    assert asking.in_parts(history)
    assert not asking._replace(place=False).in_parts(history)
    assert not asking._replace(root=str(tmp_path / "none")).in_parts(history)


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
