"""An OST beside its own history: what its neighbours cannot tell, and what is no sickness of its own."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from tarazu.daemons.mdsd.usual_times import dump, load
from tarazu.stats.slow_osts import SlowOstFinder, SpeedEstimate
from tarazu.units import MIB
from tarazu.wire.reports import OstReport
from tests.stats.test_judging import Ost, Site

HOURS = 2


class Known(Site):
    """A site that has run for some hours."""

    def __init__(self, count: int = 12, per_server: int = 3, hours: float = HOURS) -> None:
        super().__init__(count, per_server)
        for _ in range(int(hours * 60)):
            self.run(ios=20, times=1)
            assert self.slow() == set()

    def held(self, osts: Iterable[int], times: float = 10) -> None:
        for index in osts:
            self.osts[index].held = times

    def minutes(self, count: int = 4, ios: int = 60, depth: int = 1, deep: Iterable[int] = ()) -> None:
        for _ in range(count):
            for ost in self.osts:
                ost.io(ios, depth=depth if ost.index in deep else 1)
            self.tick()
            self.slow()

    def estimate(self, index: int) -> SpeedEstimate:
        return self.finder.estimates(self.pools, self.servers)[index]


def test_many_sick_ones_that_would_pass_for_other_hardware_are_seen() -> None:
    quarter, new, known = {0, 1, 2, 3}, Site(), Known()
    for site in (new, known):
        for index in quarter:
            site.osts[index].held = 10
    new.run(times=4)
    assert new.slow() == set(), "four OSTs on two servers: nobody told that they were as fast as the others"
    known.minutes()
    assert known.slow() == quarter
    estimate = known.estimate(0)
    assert estimate.relative == pytest.approx(0.1, rel=0.3) and estimate.own_relative == estimate.relative
    assert estimate.score == 1.0
    assert estimate.why.split(" times")[0] == f"{1 / estimate.relative:.1f}"
    assert estimate.why.endswith(" than its own last 2 hours, 1.0 times than its peers"), estimate.why


@pytest.mark.parametrize(
    ("count", "per_server", "sick"),
    [(8, 2, {1, 5}), (12, 3, {3, 4, 5}), (12, 3, set(range(4))), (2, 1, {1}), (2, 2, {0, 1}), (3, 3, {0, 2})],
    ids=["two of eight", "a server", "a third", "one of two", "two of two", "two of three"],
)
def test_those_that_are_slower_than_ever_are_sick(count: int, per_server: int, sick: set[int]) -> None:
    site = Known(count, per_server)
    site.held(sick)
    site.minutes()
    assert site.slow() == sick
    site.held(sick, 1)
    site.minutes(3)
    assert site.slow() == set()


def test_a_pool_on_one_server_is_seen_also_while_nobody_uses_another() -> None:
    site = Site()
    site.pools = {i: ("flash",) if i < 3 else ("disk",) for i in range(12)}
    for _ in range(HOURS * 60):
        site.run(ios=20, times=1)
        site.relative()
    for ost in site.osts[:3]:
        ost.held = 10
    for _ in range(4):
        for ost in site.osts[:3]:
            ost.io(60)
        site.tick()
        site.relative()
    assert site.slow() == {0, 1, 2}


def test_all_at_once_are_too_many_to_be_true() -> None:
    site = Known()
    site.held(range(12))
    site.minutes(8)
    assert site.slow() == set()
    assert site.finder.common() == pytest.approx(0.1, rel=0.3)
    site.held(range(12), 1)
    site.minutes(4)
    assert site.finder.common() == 1.0


def test_what_most_were_by_a_source_that_is_no_more_is_not_said_for_ever() -> None:
    site = Known()
    site.held(range(12))
    site.minutes(8)
    assert site.finder.common() < 0.5
    site.held(range(12), 1)
    for ost in site.osts:
        ost.source = "diskstats"
    site.minutes(4)
    assert site.finder.common() == 1.0


def test_an_ost_that_was_faster_for_a_day_than_its_peers_is_not_sick_when_it_is_as_they_are() -> None:
    site = Site()
    for ost in site.osts:
        ost.nonrotational = False
    site.osts[5].held = 1 / 8
    for _ in range(HOURS * 60):
        site.run(ios=20, times=1)
        site.slow()
    site.osts[5].held = 1
    for _ in range(60):
        site.run(ios=20, times=1)
        assert site.slow() == set()
    site.osts[5].held = 4
    for _ in range(10):
        site.run(ios=20, times=1)
        site.slow()
    assert site.slow() == {5}


@pytest.mark.parametrize("why", ["kind not told", "another pool", "another load"])
def test_an_ost_that_is_as_slow_as_others_that_are_not_its_equals_is_sick(why: str) -> None:
    site = Site()
    flash = {0, 3, 6, 9}
    for ost in site.osts:
        ost.nonrotational = None if why == "kind not told" else False
        ost.held = 1 / 8 if ost.index in flash else 1
    if why == "another pool":
        site.pools = {i: ("flash",) if i in flash else ("disk",) for i in range(12)}
    for minute in range(HOURS * 60 + 10):
        if minute == HOURS * 60:
            site.osts[3].held = 1
        for ost in site.osts:
            ost.io(20, depth=8 if why == "another load" and ost.index in flash else 1)
        site.tick()
        site.slow()
    assert site.slow() == {3}


@pytest.mark.parametrize("deep", [range(12), range(4), [7]], ids=["all", "a third", "one"])
def test_an_overload_makes_none_slow(deep: Iterable[int]) -> None:
    site = Known()
    site.minutes(10, 600, 32, deep)
    assert site.slow() == set() and site.finder.common() == 1.0


def test_a_slow_disk_is_not_usual_the_next_day_nor_after_a_restart() -> None:
    site = Known(8, 2)
    site.held({1, 5})
    for _ in range(24):
        site.minutes(5, ios=20)
        site.now += 3300
    assert site.slow() == {1, 5}
    data = dump(site.finder.usual)
    site.finder = SlowOstFinder("lustre")
    load(site.finder.usual, data, "kept")
    site.tick()
    site.minutes(4)
    assert site.slow() == {1, 5} and "its own last" in site.estimate(1).why


def test_the_score_rises_and_falls() -> None:
    site, scores = Known(8, 2), []
    for times in (1, 10, 10, 10, 1, 1, 1, 1):
        site.held({1}, times)
        site.minutes(1)
        scores.append(round(site.estimate(1).score, 2))
    assert scores[0] == 0 and scores[-1] == 0 and max(scores) == 1
    assert any(0 < s < 1 for s in scores)


def test_few_quick_reads_among_many_writes_make_it_well() -> None:
    site = Known(8, 2, hours=0)
    for _ in range(HOURS * 60):
        site.run(ios=20, times=1, reads=True)
        site.slow()
    site.held({1, 5}, 6)
    for _ in range(6):
        site.run(ios=20, times=1, reads=True)
        site.slow()
    assert site.slow() == {1, 5}
    for times, expected in ((6, {1, 5}), (1, set[int]())):
        site.held({1, 5}, times)
        for _ in range(15):
            for ost in site.osts:
                ost.io(8, reads=True)
            site.run(ios=600, times=1)
            site.slow()
        assert site.slow() == expected


class Remote(Ost):
    """Whose server counts requests too, of 10 ms each on their way."""

    way_s = 0.01
    requests = 0

    def report(self) -> OstReport:
        self.requests += 40
        self.spent_s = getattr(self, "spent_s", 0.0) + 40 * self.way_s
        return msgspec.structs.replace(
            super().report(),
            write_samples=self.requests,
            write_bytes=self.requests * 4 * MIB,
            write_usecs=round(self.spent_s * 1e6),
        )


@pytest.mark.parametrize("slow", [{0}, {0, 1, 2, 3}], ids=["one server", "all servers"])
def test_a_slow_way_to_a_server_is_told_from_slow_disks(slow: set[int]) -> None:
    site = Site()
    site.osts = [Remote(i) for i in range(12)]
    for _ in range(HOURS * 60):
        site.run(ios=20, times=1)
        assert site.slow() == set()
    for ost in site.osts:
        assert isinstance(ost, Remote)
        ost.way_s = 0.2 if ost.index // 3 in slow else 0.01
    for _ in range(5):
        site.run(ios=20, times=1)
        site.relative()
    if len(slow) > 1:
        assert site.slow() == set()
        return
    assert site.slow() == {0, 1, 2}
    estimate = site.finder.estimates({}, site.servers)[0]
    assert estimate.why.startswith("requests to oss0 take ") and estimate.source == "obdfilter"


def test_an_ost_behind_a_slow_way_does_not_come_and_go_with_its_disks_load() -> None:
    site = Site()
    site.osts = [Remote(i) for i in range(12)]
    for _ in range(HOURS * 60):
        site.run(ios=20, times=1)
        site.slow()
    for times in range(12):
        for ost in site.osts:
            assert isinstance(ost, Remote)
            ost.way_s = 0.2 if ost.index < 3 else 0.01
            ost.held = 60 if ost.index == 0 and times in (7, 9) else 1
        site.run(ios=20 if times < 6 else 1, times=1)
        assert site.slow() >= ({0, 1, 2} if times >= 5 else set())
    site.run(ios=20, times=1)
    for _ in range(6):
        for ost in site.osts:
            assert isinstance(ost, Remote)
            ost.way_s, ost.held = 0.01, 1
        site.run(ios=20, times=1)
        site.slow()
    assert site.slow() == set()
