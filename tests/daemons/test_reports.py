"""Reports of ended steps: what is stored of them, what mdsd hears, and how users share the work."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from tarazu import config
from tarazu.daemons.clientd import check_plans
from tarazu.daemons.planner import Planner
from tarazu.errors import WireError
from tarazu.model import EOF, Component, FilePlacement, Forecast, JobStep, Layout
from tarazu.store.database import open_database
from tarazu.store.rows import NewFile
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.wire import local

PLAIN = Layout((Component(0, EOF, 1 << 20, 2),))
UID = 1000


@pytest.fixture
def planner(tmp_path: Path) -> Planner:
    settings = config.override(config.Settings(), "clientd", database=str(tmp_path / "i.db"))
    return Planner(config.override(settings, "keys", insecure=True))


def step(uid: int = UID) -> JobStep:
    return JobStep("lustre", uid, "app", "1")


def run_of(name: str, files: int = 2) -> RunRecord:
    made = tuple(
        FileRecord(f"/{name}.{n}", f"/{name}.{n}", f"/{name}.{{n}}", 0, (0,), 0, n, 1.0, 10 + n)
        for n in range(files)
    )
    return RunRecord(step(), 1e9, 10.0, "full", made, 1, 1)


def stored(planner: Planner, name: str, files: int = 2, uid: int = UID) -> int:
    """A plan whose allocation request has the name, and what it expects."""
    with open_database(planner.settings.clientd.database) as database:
        plan_id = database.new_plan(step(uid))
        forecasts = [
            Forecast(f"/{name}.{n}", f"/{name}.{n}", f"/{name}.{{n}}", False, 0, 0, n, 100)
            for n in range(files)
        ]
        row_ids = database.add_files(plan_id, [NewFile(f, PLAIN) for f in forecasts])
        placements = dict.fromkeys(row_ids, FilePlacement(((0, 1),)))
        database.set_allocation(plan_id, status="allocated", request_id=name, placements=placements)
    return plan_id


def test_a_plan_that_is_named_again_and_again_is_read_once(planner: Planner) -> None:
    """200 times one plan of 2,000 files took 516 MiB."""
    plan_id, run = stored(planner, "a", files=500), run_of("a", files=500)
    tracemalloc.start()
    try:
        told = list(planner.ended(local.StepReport("lustre", (plan_id,) * 900, ("a",)), run, UID))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert told == [{"a": [(n, 10 + n) for n in range(500)]}]
    assert peak_bytes < 16 << 20


def test_a_report_of_more_plans_than_a_step_has_is_refused(planner: Planner) -> None:
    many = tuple(range(1, local.MAX_IDS + 2))
    with pytest.raises(WireError, match="at most"):
        check_plans(many)
    check_plans(many[1:])
    with pytest.raises(WireError, match="at most"):
        list(planner.ended(local.StepReport("lustre", many, ()), run_of("a"), UID))


def test_plans_after_one_that_was_pruned_still_get_their_outcomes(planner: Planner) -> None:
    first, second = stored(planner, "a"), stored(planner, "b")
    report = local.StepReport("lustre", (first, second + 7, second), ("a", "b"))
    told = list(planner.ended(report, run_of("b"), UID))
    assert told == [{"a": []}, {"b": [(0, 10), (1, 11)]}]
    with open_database(planner.settings.clientd.database) as database:
        assert [f.actual_bytes for f in database.files(second)] == [10, 11]


def test_a_report_of_another_users_plan_stores_nothing(planner: Planner) -> None:
    mine, other = stored(planner, "a"), stored(planner, "b", uid=UID + 1)
    report = local.StepReport("lustre", (mine, other), ("a",))
    with pytest.raises(WireError, match="one's own plan"):
        list(planner.ended(report, run_of("a"), UID))
    with open_database(planner.settings.clientd.database) as database:
        assert {f.outcome for f in database.files(mine)} == {""}
    assert len(list(planner.ended(report, run_of("a"), 0))) == 2, "root reports for all"
