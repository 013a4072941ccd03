"""What the leader keeps of its plans: maps and rows stay as large as the plans that are in force."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import msgspec
import pytest

from tarazu import config
from tarazu.config import Settings
from tarazu.layout.setstripe import parse_layout
from tarazu.run.plan import llapi
from tarazu.run.plan.accepted import FORMER_ROWS, LayoutRefused, LeftOsts, Plans
from tarazu.run.plan.asking import PlanQuestion
from tarazu.run.plan.map_writer import MapWriter
from tarazu.run.plan.waiting import Waiting
from tarazu.sim.testbed.library import library_directory
from tarazu.stats.client import FileSystem, Mount
from tarazu.store.control import read_control, write_control
from tarazu.store.placement_map import read_map
from tarazu.trace.history import History
from tarazu.wire import local
from tarazu.wire.channel import Channel
from tests.run.plan.conftest import FILES, STEP, reply

FS = FileSystem("lustre", frozenset(range(4)), frozenset(range(4)), {})


@pytest.fixture
def plans(tmp_path: Path) -> Plans:
    write_control(tmp_path)
    asking = PlanQuestion(Settings(), STEP, [Mount("/mnt", "lustre")], "/", place=True, waiting=Waiting())
    return Plans(asking, MapWriter(tmp_path))


def rows_of(plans: Plans) -> set[int]:
    return {e.row_id for e in read_map(plans.maps.directory / f"map.{plans.generation}").entries}


def test_a_rolling_plan_does_not_write_all_rows_anew(plans: Plans) -> None:
    sizes = []
    for number in range(50):
        plan = reply(number)
        plans.accept(plan, FS, guess=False)
        plans.promises.note({f.row_id: 100 for f in plan.files}, everywhere=True)
        plans.promises.progress()
        sizes.append((plans.maps.directory / f"map.{plans.generation}").stat().st_size)
    assert max(sizes) < 3 * sizes[1], "two plans, whatever was before"
    assert {p.name for p in plans.maps.directory.glob("map.*")} == {"map.49", "map.50"}
    assert read_control(plans.maps.directory)[0] == 50
    newest = {f.row_id for n in (48, 49) for f in reply(n).files}
    assert rows_of(plans) == newest
    assert sum(map(len, plans._rows)) == 2 * FILES and not plans.promises.standing
    assert len(plans.plan_ids) == len(plans.request_ids) == 50


def test_a_file_that_is_late_by_several_plans_keeps_its_row_within_bounds(plans: Plans) -> None:
    late = reply(0).files[7].row_id
    for number in range(5):
        plan = reply(number)
        plans.accept(plan, FS, guess=False)
        plans.promises.note({f.row_id: None for f in plan.files if f.row_id != late}, everywhere=True)
    assert late in rows_of(plans) and len(rows_of(plans)) == 2 * FILES + 1
    for number in range(5, 20):
        plans.accept(reply(number), FS, guess=False)
    assert len(rows_of(plans)) <= 2 * FILES + FORMER_ROWS < 10**6


def test_an_older_guess_goes_with_what_it_promised_but_for_what_it_placed(plans: Plans) -> None:
    plans.accept(reply(0), FS, guess=True)
    placed = reply(0).files[3].row_id
    plans.promises.note({placed: None}, everywhere=True)
    plans.accept(reply(1), FS, guess=True)
    assert rows_of(plans) == {f.row_id for f in reply(1).files}
    progress = plans.promises.progress()
    assert progress is not None and progress.request_ids == ("request0", "request1")
    assert dict(progress.closed["request0"]) == {n: 0 for n in range(FILES) if n != 3}
    plans.promises.note({placed: 55}, everywhere=True)
    progress = plans.promises.progress()
    assert progress is not None and progress.closed == {"request0": ((3, 55),)}
    assert progress.request_ids == ("request1",), "nothing of the first stands any more"


def test_a_layout_that_is_refused_is_not_asked_for_again_and_again(
    plans: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """liblustreapi refuses it each time: the plan is taken without it, and the next comes when it is due."""
    path, refused = tmp_path / "clientd.sock", (parse_layout("-c 2 -S 100K")[0],)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(1)

    def answer() -> None:
        with Channel(listener.accept()[0]) as channel:
            channel.receive()
            channel.send(msgspec.structs.replace(reply(0), layouts=refused, until_s=60.0, next_s=30.0))

    thread = threading.Thread(target=answer)
    thread.start()
    monkeypatch.setattr(llapi, "SONAME", str(library_directory() / "testbed" / "liblustreapi.so.1"))
    llapi._library.cache_clear()
    monkeypatch.setattr("tarazu.stats.client.file_system", lambda *_: FS)
    there = config.override(Settings(), "clientd", socket=str(path))
    plans._asking = plans._asking._replace(settings=there)
    with pytest.raises(LayoutRefused, match="liblustreapi refuses a planned layout: llapi_layout_"):
        plans.ask(History(tmp_path / "history"), 0.0, 0)
    llapi._library.cache_clear()
    thread.join()
    listener.close()
    assert plans.next_s == 30.0 and plans.planned_files == 0


def test_a_plan_asked_for_in_vain_is_reported_on_until_another_is_stored(plans: Plans) -> None:
    plans.accept(local.PlanReply("declined", "", plan_id=7), FS, guess=False)
    plans.accept(local.PlanReply("declined"), FS, guess=False)
    plans.accept(local.PlanReply("unavailable"), FS, guess=False)
    assert plans.plan_ids == [7] == [plans._in_vain]
    plans.accept(reply(0), FS, guess=False)
    assert plans.plan_ids == [1] and not plans._in_vain


def osts_of(plans: Plans) -> set[int]:
    entries = read_map(plans.maps.directory / f"map.{plans.generation}").entries
    return {index for entry in entries for osts in entry.osts for index in osts}


def closed(plans: Plans) -> dict[str, int]:
    """Request → how many files are promised no longer."""
    progress = plans.promises.progress()
    assert progress is not None
    return {id: len(files) for id, files in progress.closed.items()}


def test_rows_on_a_dead_ost_leave_the_map_at_once_with_what_is_promised_for_them(plans: Plans) -> None:
    plans.accept(reply(0), FS, guess=False)
    plans.next_s = None
    assert plans.leave({1: "dead"}) == LeftOsts(FILES // 2, history=True, guess=False)
    assert osts_of(plans) == {0, 2, 3} and len(rows_of(plans)) == FILES // 2
    assert closed(plans) == {"request0": FILES // 2}
    assert plans.next_s == 0.0 and plans.left_osts == {1: "dead"}


def test_files_on_a_slow_ost_keep_their_places_until_another_plan_comes(plans: Plans) -> None:
    plans.accept(reply(0), FS, guess=True)
    assert plans.leave({1: "sick", 2: ""}) == LeftOsts(FILES // 2, history=False, guess=True)
    assert len(rows_of(plans)) == FILES


def test_what_concerns_no_file_to_come_changes_nothing(plans: Plans) -> None:
    plan = reply(0)
    plans.accept(plan, FS, guess=False)
    plans.promises.note({f.row_id: 100 for f in plan.files}, everywhere=True)
    assert (
        plans.leave({7: "dead"})
        == plans.leave({0: ""})
        == plans.leave({1: "sick"})
        == LeftOsts(0, False, False)
    )
    assert not plans.left_osts and plans.generation == 1


def test_a_plan_that_was_asked_for_before_an_ost_died_does_not_bring_it_back(plans: Plans) -> None:
    plans.accept(reply(0), FS, guess=False)
    plans.leave({1: "dead"})
    now = time.monotonic()
    plans.accept(reply(1), FS, guess=False, asked_at=now - 10)
    assert osts_of(plans) == {0, 2, 3}
    plans.accept(reply(2), FS, guess=False, asked_at=now + 10)
    assert osts_of(plans) == {0, 1, 2, 3}, "mdsd knows by then: it is well again"


def test_the_new_plan_stands_instead_of_the_old_one_but_for_what_is_there(plans: Plans) -> None:
    plans.accept(reply(0), FS, guess=False)
    first = reply(0).files
    plans.promises.note({f.row_id: None for f in first[:50]}, everywhere=True)
    plans.leave({1: "dead"})
    closed(plans)
    anew = [msgspec.structs.replace(f, row_id=f.row_id + 1000, osts=((0, 3),)) for f in first[:-10]]
    plan = msgspec.structs.replace(reply(1), files=tuple(anew))
    plans.accept(plan, FS, guess=False, asked_at=time.monotonic(), instead=True)
    there = {f.row_id for n, f in enumerate(first) if n < 50 and 1 not in f.osts[0]}
    not_in_it = {f.row_id for f in first[-10:] if 1 not in f.osts[0]}
    kept = {f.row_id for n, f in enumerate(anew) if n >= 50 or 1 in first[n].osts[0]}
    assert rows_of(plans) == there | not_in_it | kept
    given_back = closed(plans)
    assert given_back["request1"] == len(there), "files that are there are promised once"
    old = sum(1 not in f.osts[0] for f in first[50:-10])
    assert given_back["request0"] == old


def test_no_row_is_left_when_all_osts_are_dead(plans: Plans) -> None:
    plans.accept(reply(0), FS, guess=False)
    assert plans.leave(dict.fromkeys(range(4), "dead")).files == FILES
    assert rows_of(plans) == set()
