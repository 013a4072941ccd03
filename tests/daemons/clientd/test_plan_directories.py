"""What is asked for directories: parents first, what Lustre would do by itself, nothing where somebody else decided."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tarazu.config import RunSettings
from tarazu.daemons.clientd.directories import PlannedDirectories
from tarazu.left import MAY_NOT_CHOOSE
from tarazu.model import DirectoryForecast, FileName, JobStep, Mdt, SystemView
from tarazu.plan import directories
from tarazu.store.database import open_database
from tarazu.trace.records import DirectoryRecord, RunRecord
from tarazu.wire import local, messages

MDTS = tuple(Mdt(i, "mds", 1 << 40, 1 << 40, 10**9, 10**9) for i in range(3))
KNOWN = messages.ViewReply("m", SystemView("lustre", 0.0, (), mdts=MDTS))
STEP = JobStep("lustre", 1000, "app", "1")


def made(key: str, creates: int = 100, at_s: float = 0.0) -> DirectoryForecast:
    return DirectoryForecast(FileName(key, key, key, False, 0, 0, 0), creates, at_s)


EXPECTED = [made("/u/out/a/sub", 5, 2.0), made("/u/out/a", 10, 1.0), made("/u/out/b", 20, 1.0)]


def wanted(
    place: local.DirectoryPlace, expected: list[DirectoryForecast] = EXPECTED, run: RunSettings | None = None
) -> list[directories.WantedDirectory]:
    found = dict.fromkeys(directories.parents_outside(expected), place)
    return directories.wanted(run or RunSettings(), expected, found, [0] * len(expected))


def test_parents_are_before_what_is_made_in_them() -> None:
    assert directories.parents_outside(EXPECTED) == ("/u/out",)
    kept = wanted(local.DirectoryPlace(2))
    assert [w.forecast.name.key for w in kept] == ["/u/out/a", "/u/out/b", "/u/out/a/sub"]
    assert [w.spec.parent for w in kept] == [-1, -1, 0]
    assert [w.spec.mdt for w in kept] == [2, 2, -1]
    assert [w.spec.depth for w in kept] == [2, 2, 3]


@pytest.mark.parametrize(
    ("levels", "in_turn"),
    [
        (0, [False, False, False]),
        (1, [True, True, False]),
        (2, [True, True, True]),
        (255, [True, True, True]),
    ],
)
def test_directories_are_dealt_in_turn_as_deep_as_the_default_says(levels: int, in_turn: list[bool]) -> None:
    assert [w.spec.in_turn for w in wanted(local.DirectoryPlace(0, levels))] == in_turn


def test_below_the_root_they_are_always_dealt_in_turn() -> None:
    assert [w.spec.in_turn for w in wanted(local.DirectoryPlace(0), [made("/top"), made("/top/below")])] == [
        True,
        False,
    ]


def test_nothing_is_asked_where_a_default_names_an_mdt_or_the_site_excludes() -> None:
    assert wanted(local.DirectoryPlace(0, 0, True)) == []
    kept = wanted(local.DirectoryPlace(0), run=RunSettings(exclude=("/u/out/a*",)))
    assert [w.forecast.name.key for w in kept] == ["/u/out/b"]


Requests = Callable[..., local.PlanRequest]


def request(mdts: tuple[int, ...] = (0, 1, 2), place: bool = True) -> local.PlanRequest:
    return local.PlanRequest(STEP, 1, (0,), (0,), mdts=mdts, place=place)


@pytest.mark.parametrize(
    ("asked", "known", "refused"),
    [
        (request(mdts=(0,)), KNOWN, False),
        (request(mdts=()), KNOWN, False),
        (request(place=False), KNOWN, False),
        (request(), KNOWN, True),
        (request(), None, False),
        (request(), messages.ViewReply("m"), False),
        (request(), messages.ViewReply("m", SystemView("lustre", 0.0, (), mdts=MDTS[:1])), False),
    ],
)
def test_nothing_is_asked_without_a_choice(
    asked: local.PlanRequest, known: messages.ViewReply | None, refused: bool
) -> None:
    of = PlannedDirectories(EXPECTED, refused)
    assert of.to_look_at(asked, known) == ()
    of.want(RunSettings(), {"/u/out": local.DirectoryPlace(0)})
    assert of.specs == ()
    assert of.outlined(local.PlanReply("x")).mdt_reason == (MAY_NOT_CHOOSE if refused else "")


def test_what_mdsd_chose_is_stored_and_told_but_no_mdt_that_does_not_exist(tmp_path: Path) -> None:
    of = PlannedDirectories(EXPECTED, False)
    assert of.to_look_at(request(), KNOWN) == ("/u/out",)
    of.want(RunSettings(), {"/u/out": local.DirectoryPlace(0)})
    answer = messages.AllocationReply("r", "allocated", mdts=(2, 9, -1), mdt_cost=1.5, mdt_cost_bound=1.25)
    with open_database(tmp_path / "db") as database:
        plan_id = database.new_plan(STEP)
        of.store(database, plan_id)
        reply = of.placed(database, local.PlanReply("planned"), answer, (0, 1, 2))
        assert [(d.name.key, d.mdt) for d in reply.directories] == [("/u/out/a", 2)]
        assert (reply.mdt_cost, reply.mdt_cost_bound) == (1.5, 1.25)
        rows = database.directories(plan_id)
        assert {(r.key, r.mdt, r.creates) for r in rows} == {
            ("/u/out/a", 2, 10),
            ("/u/out/b", -1, 20),
            ("/u/out/a/sub", -1, 5),
        }
        assert {d.row_id for d in reply.directories} <= {r.id for r in rows}
        plan = database.plan(plan_id)
        assert plan and (plan.mdt_cost, plan.mdt_cost_bound) == (1.5, 1.25)
        key = "/u/out/b"
        records = [
            DirectoryRecord(key, key, key, 0, (0,), 0, 0, 1.0, 21, outcome="miss"),
            DirectoryRecord("/u/out/a", "/u/out/a", "/u/out/a", 0, (0,), 0, 0, 1.0, 9, outcome="miss"),
        ]
        database.record_outcomes(plan_id, RunRecord(STEP, 1.0, 1.0, "full", (), directories=tuple(records)))
        became = {r.key: r.outcome for r in database.directories(plan_id)}
        assert became == {"/u/out/a": "miss", "/u/out/b": "left", "/u/out/a/sub": "unseen"}
        wrong = messages.AllocationReply("r", "allocated", mdts=(1,))
        assert of.placed(database, local.PlanReply("planned"), wrong, (0, 1, 2)).directories == ()


@pytest.mark.parametrize(
    ("rank", "of_left", "nth_of_left", "found"),
    [(-1, -1, 0, False), (-1, 3, 0, False), (-1, -1, 1, True), (2, 2, 0, False), (2, 3, 0, True)],
)
def test_one_that_is_left_to_lustre_is_not_found_by_the_form_of_another(
    tmp_path: Path, rank: int, of_left: int, nth_of_left: int, found: bool
) -> None:
    """As of processes that do not know their rank, each of which makes its first directory."""
    expected = [
        DirectoryForecast(FileName(f"/u/r{i}", f"/u/r{i}", "/u/r#", False, of, n, n), 10, 0.0)
        for i, (of, n) in enumerate([(rank, 0), (of_left, nth_of_left)])
    ]
    of = PlannedDirectories(expected, False)
    assert of.to_look_at(request(), KNOWN) == ("/u",)
    of.want(RunSettings(), {"/u": local.DirectoryPlace(0)})
    with open_database(tmp_path / "db") as database:
        of.store(database, database.new_plan(STEP))
        answer = messages.AllocationReply("r", "allocated", mdts=(2, -1))
        (planned,) = of.placed(database, local.PlanReply("planned"), answer, (0, 1, 2)).directories
    assert (planned.name.key, planned.name.loose == "/u/r#") == ("/u/r0", found)


def test_a_user_who_may_not_choose_reads_why_in_the_plan(tmp_path: Path) -> None:
    """`tarazu job explain` of a directory said that nobody was asked."""
    of = PlannedDirectories(EXPECTED, True)
    with open_database(tmp_path / "db") as database:
        plan_id = database.new_plan(STEP)
        of.store(database, plan_id)
        plan = database.plan(plan_id)
        assert plan and plan.mdt_reason == MAY_NOT_CHOOSE
