"""Reports of ended steps: what is stored of them, what mdsd hears, and how users share the work."""

from __future__ import annotations

import os
import sqlite3
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tarazu.daemons.clientd import reports as reporting
from tarazu.daemons.clientd.notices import Notices
from tarazu.daemons.clientd.reports import ReportWorkers
from tarazu.daemons.clientd.service import check_plans
from tarazu.daemons.clientd.stored_plans import StoredPlans
from tarazu.errors import WireError
from tarazu.lustre import EOF
from tarazu.model import Component, FileName, FilePlacement, Forecast, JobStep, Layout
from tarazu.store import sqlite
from tarazu.store.database import open_database
from tarazu.store.rows import NewFile
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run
from tarazu.wire import local
from tarazu.wire.messages import FileClosed, Request, StepEnded
from tests.daemons.listening import PATIENCE_S, Mdsd, until

PLAIN = Layout((Component(0, EOF, 1 << 20, 2),))
UID = 1000


@pytest.fixture
def plans(tmp_path: Path) -> StoredPlans:
    return StoredPlans(str(tmp_path / "i.db"))


def step(uid: int = UID) -> JobStep:
    return JobStep("lustre", uid, "app", "1")


def run_of(name: str, files: int = 2) -> RunRecord:
    made = tuple(
        FileRecord(f"/{name}.{n}", f"/{name}.{n}", f"/{name}.{{n}}", 0, (0,), 0, n, 1.0, 10 + n)
        for n in range(files)
    )
    return RunRecord(step(), 1e9, 10.0, "full", made, 1, 1)


def stored(plans: StoredPlans, name: str, files: int = 2, uid: int = UID) -> int:
    """A plan whose allocation request has the name, and what it expects."""
    with open_database(plans.database) as database:
        plan_id = database.new_plan(step(uid))
        forecasts = [
            Forecast(FileName(f"/{name}.{n}", f"/{name}.{n}", f"/{name}.{{n}}", False, 0, 0, n), 100)
            for n in range(files)
        ]
        row_ids = database.add_files(plan_id, [NewFile(f, PLAIN) for f in forecasts])
        placements = dict.fromkeys(row_ids, FilePlacement(((0, 1),)))
        database.set_allocation(plan_id, status="allocated", request_id=name, placements=placements)
    return plan_id


def test_a_plan_that_is_named_again_and_again_is_read_once(plans: StoredPlans) -> None:
    """200 times one plan of 2,000 files took 516 MiB."""
    plan_id, run = stored(plans, "a", files=500), run_of("a", files=500)
    tracemalloc.start()
    try:
        report = local.StepReport("lustre", (plan_id,) * 900, ("a",))
        told = list(plans.closed(report, run, UID))
        plans.ended(report, run, UID)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert told == [{"a": [(n, 10 + n) for n in range(500)]}]
    assert peak_bytes < 16 << 20


def test_a_report_of_more_plans_than_a_step_has_is_refused(plans: StoredPlans) -> None:
    many = tuple(range(1, local.MAX_IDS + 2))
    with pytest.raises(WireError, match="at most"):
        check_plans(many)
    check_plans(many[1:])
    with pytest.raises(WireError, match="at most"):
        plans.ended(local.StepReport("lustre", many, ()), run_of("a"), UID)


def test_plans_after_one_that_was_pruned_still_get_their_outcomes(plans: StoredPlans) -> None:
    first, second = stored(plans, "a"), stored(plans, "b")
    report = local.StepReport("lustre", (first, second + 7, second), ("a", "b"))
    told = list(plans.closed(report, run_of("b"), UID))
    plans.ended(report, run_of("b"), UID)
    assert told == [{"a": []}, {"b": [(0, 10), (1, 11)]}]
    with open_database(plans.database) as database:
        assert [f.actual_bytes for f in database.files(second)] == [10, 11]


def test_a_report_of_another_users_plan_stores_nothing(plans: StoredPlans) -> None:
    mine, other = stored(plans, "a"), stored(plans, "b", uid=UID + 1)
    report = local.StepReport("lustre", (mine, other), ("a",))
    with pytest.raises(WireError, match="one's own plan"):
        plans.ended(report, run_of("a"), UID)
    with open_database(plans.database) as database:
        assert {f.outcome for f in database.files(mine)} == {""}
    assert len(list(plans.closed(report, run_of("a"), 0))) == 2, "root reports for all"


@pytest.fixture
def reports(plans: StoredPlans, notices: Notices) -> ReportWorkers:
    return ReportWorkers(plans, notices)


def put(
    reports: ReportWorkers, directory: Path, name: str, plan_ids: tuple[int, ...] = (), uid: int = UID
) -> None:
    path = directory / f"{name}.run"
    path.write_bytes(encode_run(run_of(name)))
    reports.put(uid, local.StepReport("lustre", plan_ids, (name,)), os.open(path, os.O_RDONLY))


def has_ended(*names: str) -> Callable[[list[Request]], bool]:
    return lambda seen: set(names) <= {m.id for m in seen if isinstance(m, StepEnded)}


def test_a_report_that_finds_the_database_locked_is_stored_later_and_mdsd_does_not_wait(
    plans: StoredPlans, reports: ReportWorkers, mdsd: Mdsd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_id = stored(plans, "a")
    monkeypatch.setattr(sqlite, "BUSY_S", 0.1)
    monkeypatch.setattr(reporting, "FIRST_RETRY_S", 0.2)
    other = sqlite3.connect(plans.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    reports.start()
    put(reports, tmp_path, "a", (plan_id,))
    seen = mdsd.take(has_ended("a"))
    assert next(m.files for m in seen if isinstance(m, FileClosed)) == ((0, 10), (1, 11))
    assert reports.waiting == 1
    other.execute("ROLLBACK")
    other.close()
    until(lambda: reports.waiting == 0)
    with open_database(plans.database) as database:
        assert [f.actual_bytes for f in database.files(plan_id)] == [10, 11]
    assert len([m for m in mdsd.seen if isinstance(m, StepEnded)]) == 1


def test_a_database_that_stays_locked_does_not_keep_reports_for_ever(
    plans: StoredPlans, reports: ReportWorkers, mdsd: Mdsd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_id = stored(plans, "a")
    monkeypatch.setattr(sqlite, "BUSY_S", 0.05)
    monkeypatch.setattr(reporting, "FIRST_RETRY_S", 0.01)
    monkeypatch.setattr(reporting, "MAX_ATTEMPTS", 3)
    other = sqlite3.connect(plans.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        reports.start()
        put(reports, tmp_path, "a", (plan_id,))
        mdsd.take(has_ended("a"))
        until(lambda: reports.waiting == 0)
    finally:
        other.close()


def test_a_report_whose_descriptor_blocks_stops_no_other_and_its_step_ends(
    reports: ReportWorkers, mdsd: Mdsd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, read = threading.Event(), reporting.read_history

    def blocked(descriptor: int) -> RunRecord:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("/slow.run"):
            free.wait(PATIENCE_S)
        return read(descriptor)

    monkeypatch.setattr(reporting, "read_history", blocked)
    monkeypatch.setattr(reporting, "ENDED_S", 0.5)
    reports.start()
    put(reports, tmp_path, "slow")
    put(reports, tmp_path, "behind")
    put(reports, tmp_path, "other", uid=UID + 1)
    mdsd.take(has_ended("slow", "behind", "other"))
    until(lambda: reports.waiting == 2)
    free.set()
    until(lambda: reports.waiting == 0)


def test_what_is_no_run_ends_its_step_all_the_same(
    reports: ReportWorkers, mdsd: Mdsd, tmp_path: Path
) -> None:
    reports.start()
    reports.put(UID, local.StepReport("lustre", (), ("a",)), os.open(tmp_path, os.O_RDONLY))
    mdsd.take(has_ended("a"))
    until(lambda: reports.waiting == 0)


def test_very_many_reports_of_one_user_do_not_delay_those_of_another(
    reports: ReportWorkers, tmp_path: Path
) -> None:
    for number in range(50):
        put(reports, tmp_path, f"a{number}")
    put(reports, tmp_path, "b", uid=UID + 1)
    first, second = reports._take(), reports._take()
    assert (first.uid, second.uid) == (UID, UID + 1), "one at a time of each"
    reports._done(first, None)
    reports._done(second, None)
    assert reports._take().report.request_ids == ("a1",)
