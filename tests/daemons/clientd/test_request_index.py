"""A planned file is named by its place in mdsd's request, in the reply and in the database."""

from __future__ import annotations

from pathlib import Path

from tarazu.daemons.clientd.planner import planned_files
from tarazu.lustre import EOF
from tarazu.model import Component, FileName, FilePlacement, Forecast, JobStep, Layout
from tarazu.plan.left_to_lustre import checked
from tarazu.store.database import open_database
from tarazu.store.rows import NewFile

PLAIN = Layout((Component(0, EOF, 1 << 20, 2),))
STEP = JobStep("lustre", 1000, "app", "1")


def test_the_index_of_a_row_is_its_place_in_the_request(tmp_path: Path) -> None:
    """Files that got no OSTs count too: mdsd counts all files of the request."""
    forecasts = [Forecast(FileName(f"/{n}", f"/{n}", "/{n}", False, 0, 0, n), 100) for n in range(4)]
    with open_database(tmp_path / "db") as database:
        plan_id = database.new_plan(STEP)
        row_ids = database.add_files(plan_id, [NewFile(f, PLAIN) for f in forecasts])
        osts = [((0, 1),), ((),), ((2, 3),), ((),)]
        placeable = [(r, f, PLAIN) for r, f in zip(row_ids, forecasts, strict=True)]
        allocated, left = checked(placeable, osts, 8)
        database.set_allocation(plan_id, status="allocated", request_id="r", placements=allocated, left=left)
        rows = database.files(plan_id)
    planned = planned_files(placeable, allocated)["files"]
    assert [(f.name.key, f.request_index) for f in planned] == [("/0", 0), ("/2", 2)]
    assert [r.request_index for r in rows] == [0, 1, 2, 3]
    assert [r.placement is not None for r in rows] == [True, False, True, False]
    assert [r.left_because for r in rows] == ["", "mdsd gave it no OSTs", "", "mdsd gave it no OSTs"]


def test_a_file_that_several_processes_open_is_planned_as_shared() -> None:
    name = FileName("/s", "/s", "/s", False, -1, 0, 0)
    placeable = [(i, Forecast(name, 100, writers=writers), PLAIN) for i, writers in enumerate((2, 1))]
    allocated = dict.fromkeys(range(2), FilePlacement(((0, 1),)))
    assert [f.shared for f in planned_files(placeable, allocated)["files"]] == [True, False]
