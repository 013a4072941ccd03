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
from tarazu.daemons.left import checked
from tarazu.daemons.planner import planned_files
from tarazu.layout.setstripe import parse_layout
from tarazu.lustre import EOF
from tarazu.model import ANY_RANK, Component, Forecast, JobStep, Layout
from tarazu.run import llapi
from tarazu.run.maps import Maps
from tarazu.run.plans import FORMER_ROWS, LayoutRefused, Plans
from tarazu.run.promises import Promise
from tarazu.sim.testbed.library import library_directory
from tarazu.stats.client import FileSystem, Mount
from tarazu.store.control import read_control, write_control
from tarazu.store.database import open_database
from tarazu.store.placement_map import read_map
from tarazu.store.rows import NewFile
from tarazu.trace.history import History
from tarazu.wire import local

PLAIN = Layout((Component(0, EOF, 1 << 20, 2),))
STEP = JobStep("lustre", 1000, "app", "1")
FS = FileSystem("lustre", frozenset(range(4)), frozenset(range(4)), {})
FILES = 200


@pytest.fixture
def plans(tmp_path: Path) -> Plans:
    write_control(tmp_path)
    return Plans(Settings(), STEP, [Mount("/mnt", "lustre")], "/", Maps(tmp_path), place=True)


def reply(number: int, files: int = FILES, rank: int = 0) -> local.PlanReply:
    """Plan `number`, with rows of its own."""
    rows = tuple(
        local.PlannedFile(
            row_id=1 + number * files + n,
            key=f"/{number}.{n}",
            precise=f"/{number}.{n}",
            loose=f"/{number}.{{n}}",
            volatile=False,
            rank=rank,
            nth_precise=0,
            nth_loose=n,
            size_bytes=100,
            layout=0,
            osts=((n % 4, (n + 1) % 4),),
            request_index=n,
        )
        for n in range(files)
    )
    return local.PlanReply("planned", "", number + 1, f"request{number}", (PLAIN,), rows)


def rows_of(plans: Plans) -> set[int]:
    return {e.row_id for e in read_map(plans.maps.directory / f"map.{plans.generation}").entries}


def test_a_rolling_plan_does_not_write_all_rows_anew(plans: Plans) -> None:
    sizes = []
    for number in range(50):
        plan = reply(number)
        plans._accept(plan, FS, guess=False)
        plans.note({f.row_id: 100 for f in plan.files}, everywhere=True)
        plans.progress()
        sizes.append((plans.maps.directory / f"map.{plans.generation}").stat().st_size)
    assert max(sizes) < 3 * sizes[1], "two plans, whatever was before"
    assert {p.name for p in plans.maps.directory.glob("map.*")} == {"map.49", "map.50"}
    assert read_control(plans.maps.directory)[0] == 50
    newest = {f.row_id for n in (48, 49) for f in reply(n).files}
    assert rows_of(plans) == newest
    assert sum(map(len, plans._rows)) == 2 * FILES and not plans.promises
    assert len(plans.plan_ids) == len(plans.request_ids) == 50


def test_a_file_that_is_late_by_several_plans_keeps_its_row_within_bounds(plans: Plans) -> None:
    late = reply(0).files[7].row_id
    for number in range(5):
        plan = reply(number)
        plans._accept(plan, FS, guess=False)
        plans.note({f.row_id: None for f in plan.files if f.row_id != late}, everywhere=True)
    assert late in rows_of(plans) and len(rows_of(plans)) == 2 * FILES + 1
    for number in range(5, 20):
        plans._accept(reply(number), FS, guess=False)
    assert len(rows_of(plans)) <= 2 * FILES + FORMER_ROWS < 10**6


def test_an_older_guess_goes_with_what_it_promised_but_for_what_it_placed(plans: Plans) -> None:
    plans._accept(reply(0), FS, guess=True)
    placed = reply(0).files[3].row_id
    plans.note({placed: None}, everywhere=True)
    plans._accept(reply(1), FS, guess=True)
    assert rows_of(plans) == {f.row_id for f in reply(1).files}
    progress = plans.progress()
    assert progress is not None and progress.request_ids == ("request0", "request1")
    assert dict(progress.closed["request0"]) == {n: 0 for n in range(FILES) if n != 3}
    plans.note({placed: 55}, everywhere=True)
    progress = plans.progress()
    assert progress is not None and progress.closed == {"request0": ((3, 55),)}
    assert progress.request_ids == ("request1",), "nothing of the first stands any more"


def test_a_close_is_told_once_and_again_only_with_another_size(plans: Plans) -> None:
    plans._accept(reply(0), FS, guess=False)
    row = reply(0).files[0].row_id
    told = []
    for size in (None, 10, 10, 10, 20, 20):
        plans.note({row: size}, everywhere=True)
        progress = plans.progress()
        assert progress is not None
        told.append(progress.closed)
    assert told == [{}, {"request0": ((0, 10),)}, {}, {}, {"request0": ((0, 20),)}, {}]


def test_what_did_not_reach_clientd_is_told_again(plans: Plans) -> None:
    plans._accept(reply(0), FS, guess=False)
    first, second = (f.row_id for f in reply(0).files[:2])
    plans.note({first: 10, second: 10}, everywhere=True)
    lost = plans.progress()
    assert lost is not None
    plans.note({second: 99}, everywhere=True)
    plans.untold(lost)
    again = plans.progress()
    assert again is not None and dict(again.closed["request0"]) == {0: 10, 1: 99}


def test_a_shared_file_is_closed_only_when_all_nodes_were_looked_at(plans: Plans) -> None:
    plans._accept(reply(0, rank=ANY_RANK), FS, guess=False)
    row = reply(0).files[0].row_id
    plans.note({row: 10}, everywhere=False)
    assert not plans.news
    plans.note({row: 10}, everywhere=True)
    assert plans.news


def test_a_progress_holds_no_more_than_clientd_takes(plans: Plans) -> None:
    many = local.MAX_CLOSED + 5
    plans._accept(reply(0, files=many), FS, guess=False)
    plans.note({f.row_id: 1 for f in reply(0, files=many).files}, everywhere=True)
    first, rest = plans.progress(), plans.progress()
    assert first and rest and len(first.closed["request0"]) == local.MAX_CLOSED
    assert len(rest.closed["request0"]) == 5 and not plans.news


def test_a_million_files_are_followed_in_little_memory() -> None:
    promise = Promise(reply(0, files=10_000), time.monotonic(), guess=False)
    held = (promise._rows, promise._indexes, promise._sizes)
    assert sum(a.itemsize * len(a) for a in held) + len(promise._shared) <= 32 * len(promise)


def test_the_index_of_a_row_is_its_place_in_the_request(tmp_path: Path) -> None:
    """Files that got no OSTs count too: mdsd counts all files of the request."""
    forecasts = [Forecast(f"/{n}", f"/{n}", "/{n}", False, 0, 0, n, 100) for n in range(4)]
    with open_database(tmp_path / "db") as database:
        plan_id = database.new_plan(STEP)
        row_ids = database.add_files(plan_id, [NewFile(f, PLAIN) for f in forecasts])
        osts = [((0, 1),), ((),), ((2, 3),), ((),)]
        placeable = [(r, f, PLAIN) for r, f in zip(row_ids, forecasts, strict=True)]
        allocated, left = checked(placeable, osts, 8)
        database.set_allocation(plan_id, status="allocated", request_id="r", placements=allocated, left=left)
        rows = database.files(plan_id)
    planned = planned_files(placeable, allocated)["files"]
    assert [(f.key, f.request_index) for f in planned] == [("/0", 0), ("/2", 2)]
    assert [r.request_index for r in rows] == [0, 1, 2, 3]
    assert [r.placement is not None for r in rows] == [True, False, True, False]
    assert [r.left_because for r in rows] == ["", "mdsd gave it no OSTs", "", "mdsd gave it no OSTs"]


def test_a_step_of_very_many_plans_names_the_newest(plans: Plans) -> None:
    for number in range(local.MAX_IDS + 5):
        plans.promises.append(Promise(reply(number, files=1), time.monotonic() + 60, guess=False))
    progress = plans.progress()
    assert progress is not None and len(progress.request_ids) == local.MAX_IDS
    assert progress.request_ids[-1] == f"request{local.MAX_IDS + 4}"


def test_a_layout_that_is_refused_is_not_asked_for_again_and_again(
    plans: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """liblustreapi refuses it each time: the plan is taken without it, and the next comes when it is due."""
    path, refused = tmp_path / "clientd.sock", (parse_layout("-c 2 -S 100K")[0],)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(1)

    def answer() -> None:
        with local.Channel(listener.accept()[0]) as channel:
            channel.receive()
            channel.send(msgspec.structs.replace(reply(0), layouts=refused, until_s=60.0, next_s=30.0))

    thread = threading.Thread(target=answer)
    thread.start()
    monkeypatch.setattr(llapi, "SONAME", str(library_directory() / "testbed" / "liblustreapi.so.1"))
    llapi._library.cache_clear()
    monkeypatch.setattr("tarazu.stats.client.file_system", lambda *_: FS)
    plans.settings = config.override(plans.settings, "clientd", socket=str(path))
    with pytest.raises(LayoutRefused, match="liblustreapi refuses a planned layout: llapi_layout_"):
        plans.ask(History(tmp_path / "history"), 0.0, 0)
    llapi._library.cache_clear()
    thread.join()
    listener.close()
    assert plans.next_s == 30.0 and plans.planned_files == 0


def test_a_plan_asked_for_in_vain_is_reported_on_until_another_is_stored(plans: Plans) -> None:
    plans._accept(local.PlanReply("declined", "", plan_id=7), FS, guess=False)
    plans._accept(local.PlanReply("declined"), FS, guess=False)
    plans._accept(local.PlanReply("unavailable"), FS, guess=False)
    assert plans.plan_ids == [7] == [plans._in_vain]
    plans._accept(reply(0), FS, guess=False)
    assert plans.plan_ids == [1] and not plans._in_vain
