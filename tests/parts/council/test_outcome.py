"""What a change gave is measured after it; what made things worse comes back by itself, and is told of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tarazu.parts.changes import agent as agents
from tarazu.parts.changes import engine
from tarazu.parts.changes.agent import Agent, Plan
from tarazu.parts.changes.model.change import Score
from tarazu.parts.changes.model.outcome import Hours
from tarazu.parts.changes.model.trail import Event
from tarazu.parts.changes.settings import directory_of
from tarazu.parts.changes.trail import read
from tests.parts.changes.case import Case
from tests.parts.council.client_case import ClientCase

HOUR_S, DAY = 3600.0, 24
BEGIN_S = 1.8e9


class Site:
    """A client whose read-ahead is tuned, and days of what its jobs' time is like."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.now_s = BEGIN_S
        self.lever = case.wishes()[2][0].lever
        score = Score("time", 2.0, 1.5)
        self.plan = Plan((msgspec.structs.replace(case.wishes()[2][0], scores=(score,)),))
        self.agent = self.started()

    def started(self) -> Agent:
        return self.case.agent(clock=lambda: self.now_s)

    def hours(self, count: int, time: float) -> None:
        """Of jobs that take so long; the daemon wants its change in each round."""
        for _ in range(count):
            self.now_s += HOUR_S
            self.agent.saw(self.lever, {"time": time})

    def events(self) -> list[Event]:
        return list(read(Path(directory_of(self.case.settings)) / "trail.jsonl", 1000))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    case = ClientCase(tmp_path)
    for name, value in case.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(agents, "SAVE_S", -1.0)
    monkeypatch.setattr(engine, "LOOK_S", 0.0)
    yield Site(case)
    os.environ.pop("TARAZU_ROOT", None)


def test_what_made_things_worse_comes_back_and_is_not_made_again_for_a_day(site: Site) -> None:
    before = site.case.now()
    site.hours(3 * DAY, 2.0)
    site.agent.follow(site.plan, "apply", "")
    made = site.case.now()
    assert made != before
    site.hours(3, 3.0)
    assert site.case.now() == made, "three hours of which one was the change's own are too few"
    site.hours(3, 3.0)
    assert site.case.now() == before
    (worse,) = [each for each in site.events() if each.event == "worse"]
    assert "promised 2 -> 1.5, was 2, is 3" in worse.why
    site.agent.follow(site.plan, "apply", "")
    assert site.case.now() == before
    (proposal,) = site.agent.store.proposals().proposals
    assert "made things worse" in proposal.why_not
    site.now_s += 25 * HOUR_S
    site.agent.follow(site.plan, "apply", "")
    assert site.case.now() == made


def test_what_keeps_work_off_what_is_sick_stays_when_more_fall_sick(site: Site) -> None:
    """A pool was taken back, with all sick OSTs in it again, for OSTs that had fallen sick since."""
    (change,) = site.plan.changes
    site.plan = Plan((msgspec.structs.replace(change, mends=True),))
    site.hours(3 * DAY, 2.0)
    site.agent.follow(site.plan, "apply", "")
    made = site.case.now()
    site.hours(8, 3.0)
    assert site.case.now() == made
    assert [each.event for each in site.events()].count("worse") == 1


def test_what_gave_what_it_promised_stays_and_is_told_of(site: Site) -> None:
    site.hours(3 * DAY, 2.0)
    site.agent.follow(site.plan, "apply", "")
    made = site.case.now()
    site.hours(8, 1.5)
    assert site.case.now() == made
    (held,) = site.agent.store.held_changes.values()
    assert held.gave is not None and held.gave.verdict == "better"
    assert [each.event for each in site.events()].count("measured") == 1


def test_what_promised_nothing_is_measured_and_another_value_may_be_tried(site: Site) -> None:
    """Who learns says nothing of what a value will give: it was never looked at what came of it."""
    (change,) = site.plan.changes
    unpromised = msgspec.structs.replace(change, scores=())
    site.plan = Plan((unpromised,))
    before = site.case.now()
    site.hours(3 * DAY, 2.0)
    site.agent.follow(site.plan, "apply", "")
    made = site.case.now()
    site.hours(8, 2.3)
    assert site.case.now() == made, "days differ by as much"
    site.agent.engine.take_back("")
    site.agent.follow(site.plan, "apply", "")
    site.hours(8, 3.0)
    assert site.case.now() == before
    (worse,) = [each for each in site.events() if each.event == "worse"]
    assert "no gain promised, was" in worse.why
    assert not site.agent.follow(site.plan, "apply", "").set
    other = site.case.wishes()[1][1]
    assert other.key == change.key and site.agent.follow(Plan((other,)), "apply", "").set
    site.agent.follow(site.plan, "apply", "")
    assert site.case.now() == before, "it is still the value that was worse"


def test_a_mean_of_an_hour_is_of_what_was_moved_in_it() -> None:
    """A second in which a few bytes trickle counts as little as they are."""
    hours = Hours()
    hours.add(1000.0, BEGIN_S, weight=0.001)
    hours.add(1.0, BEGIN_S, weight=99.0)
    ((total, weights),) = hours.sums.values()
    assert total / weights == pytest.approx(1.01, abs=0.01)
