"""Plans that are asked for again and again: with a real mdsd that says no, and then yes."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu import config
from tarazu.daemons import questions
from tarazu.daemons.clientd.planner import Planner
from tarazu.errors import StoreError
from tarazu.model import JobStep
from tarazu.store.database import InteractionDatabase, open_database
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run
from tarazu.wire import local
from tarazu.wire.messages import StatusReply, StatusRequest
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.listening import PATIENCE_S

if TYPE_CHECKING:
    from tests.daemons.conftest import Site

UID = 1000
STEP = JobStep("lustre", UID, "app", "2")
OSTS = (0, 1, 2, 3, 4)


@pytest.fixture
def planner(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planner]:
    monkeypatch.setattr(questions, "ANSWER_S", PATIENCE_S)
    monkeypatch.setattr(questions, "ALLOCATION_S", 2 * PATIENCE_S)
    settings = config.override(config.load(site.config), "clientd", database=str(tmp_path / "i.db"))
    planner = Planner(config.override(settings, "layout", min_size=0))
    yield planner
    planner.close()


def ask(
    planner: Planner,
    tmp_path: Path,
    attempt: int,
    instead_of: int = 0,
    sizes: tuple[int, ...] = (8 << 20, 8 << 20),
) -> local.PlanReply:
    files = tuple(
        FileRecord(f"/{n}", f"/{n}", "/{n}", 0, (0,), 0, n, 0.1, size) for n, size in enumerate(sizes)
    )
    path = tmp_path / "past.run"
    path.write_bytes(encode_run(RunRecord(STEP, 1.0, 2.0, "light", files, 1, 1)))
    request = local.PlanRequest(STEP, 1, OSTS, OSTS, attempt=attempt, instead_of=instead_of)
    with path.open("rb") as file:
        return planner.plan(request, [file.fileno()], UID, lambda *_: local.DirectoryLayouts(b"", {}))


def started(site: Site, **mdsd: float) -> None:
    site.stop()
    site.configure(**mdsd)
    site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["file_systems"])


def plan_ids(planner: Planner) -> list[int]:
    with open_database(planner.settings.clientd.database) as database:
        return [plan.id for plan in database.plans()]


@pytest.mark.long
def test_attempts_in_vain_push_out_no_plans(planner: Planner, site: Site, tmp_path: Path) -> None:
    started(site)
    placed = ask(planner, tmp_path, 0)
    assert placed.status == "planned", placed
    started(site, user_share=1e-9)
    vain = ask(planner, tmp_path, 0)
    assert (vain.status, plan_ids(planner)) == ("declined", [vain.plan_id, placed.plan_id])
    for attempt in range(1, 4):
        again = ask(planner, tmp_path, attempt, vain.plan_id)
        assert (again.status, again.plan_id) == ("declined", 0)
    assert plan_ids(planner) == [vain.plan_id, placed.plan_id]
    started(site)
    came = ask(planner, tmp_path, 4, vain.plan_id)
    assert came.status == "planned" and plan_ids(planner) == [came.plan_id, placed.plan_id]
    ask(planner, tmp_path, 0, placed.plan_id)
    assert placed.plan_id in plan_ids(planner), "one that was placed stays"


def test_a_closed_gate_declines_the_next_attempt_at_once(
    planner: Planner, site: Site, tmp_path: Path
) -> None:
    started(site, memory_limit=1e-9)
    site.wait_status(lambda status: not status["gate"]["open"])
    reply = ask(planner, tmp_path, 1)
    assert reply.status == "declined" and reply.reason and not plan_ids(planner)


def test_a_plan_that_does_not_fit_as_a_whole_is_placed_as_far_as_it_fits(
    planner: Planner, site: Site, tmp_path: Path
) -> None:
    started(site)
    with planner.mdsd.connection() as mdsd:
        view = planner.mdsd.view(mdsd, "lustre").view
    assert view is not None
    free = sum(ost.avail_bytes for ost in view.osts if ost.usable)
    share = (20 << 20) / free
    started(site, user_share=share)
    reply = ask(planner, tmp_path, 0, sizes=(8 << 20, 16 << 20, 2 << 20))
    assert reply.status == "planned" and [f.name.key for f in reply.files] == ["/1", "/2"]
    ((why, count),) = reply.left.items()
    assert count == 1 and "uid 1000 holds promises of 0 bytes" in why and "mdsd.user_share" in why
    assert {f.request_index for f in reply.files} == {1, 2}
    with open_database(planner.settings.clientd.database) as database:
        rows = {row.forecast.name.key: row for row in database.files(reply.plan_id)}
    assert rows["/0"].left_because == why[:180] and not rows["/0"].placement
    assert rows["/1"].placement and not rows["/1"].left_because
    assert "left=1 reason=" in site.audit.read_text()


@pytest.fixture
def older_mdsd(site: Site) -> Iterator[Counter[str]]:
    """An mdsd that knows no view: it drops the request as any that it cannot read."""
    with contextlib.closing(ZmqTransport(curve_for("server", site.keys))) as transport:
        replier, stopped, seen = transport.replier(site.requests), threading.Event(), Counter[str]()

        def answer() -> None:
            while not stopped.is_set():
                asked = replier.receive(0.05)
                if asked:
                    seen[type(asked[1]).__name__] += 1
                    if isinstance(asked[1], StatusRequest):
                        replier.reply(asked[0], StatusReply(asked[1].message_id, {"daemon": "mdsd"}))

        thread = threading.Thread(target=answer)
        thread.start()
        yield seen
        stopped.set()
        thread.join()


@pytest.mark.long
def test_an_older_mdsd_costs_a_job_its_placement_and_nothing_else(
    planner: Planner, older_mdsd: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "ANSWER_S", 1.0)
    reply = ask(planner, tmp_path, 0)
    assert reply.status == "unavailable" and "expected an answer within 1 s" in reply.reason
    assert reply.forecast_files == 2 and plan_ids(planner) == [reply.plan_id], "the forecast is kept"
    assert older_mdsd["ViewRequest"] and not older_mdsd["AllocationRequest"]
    monkeypatch.setattr(questions, "ANSWER_S", PATIENCE_S)
    planner.mdsd._silent_until = 0.0
    assert planner.mdsd.status() == {"daemon": "mdsd"}


@pytest.mark.parametrize("attempt", [0, pytest.param(1, marks=pytest.mark.long)])
def test_what_cannot_be_stored_is_not_promised(
    planner: Planner, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt: int
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("database", "room", "a full disk")

    started(site)
    monkeypatch.setattr(InteractionDatabase, "set_allocation", full)
    with pytest.raises(StoreError):
        ask(planner, tmp_path, attempt)
    status = site.status()["requests"]
    assert status["answers"] == {"allocated": 1} and status["promises"] == 0
