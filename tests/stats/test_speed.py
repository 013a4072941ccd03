"""OST speeds: a sick target shows, an idle one does not, a recovered one comes back."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.stats.collector import Collector
from tarazu.stats.slow_osts import SlowOstFinder
from tarazu.units import GIB, KIB, MIB
from tarazu.wire.reports import OstReport
from tests.stats.watched import Watched

from .conftest import Series

INTERVAL_S = 60.0
INTERVALS = 3
FULL = 800e6
"""Bytes per second of service time of a healthy OST."""


class Ost:
    """A target whose counters grow as it is written to."""

    def __init__(self, index: int, speed: float = FULL) -> None:
        self.index, self.speed = index, speed
        self.size = self.writes = self.usecs = 0
        self.start_s = 1.0

    def write(self, size_bytes: int, each_bytes: int = 4 * MIB) -> None:
        self.size += size_bytes
        self.writes += max(1, size_bytes // each_bytes)
        self.usecs += round(size_bytes / self.speed * 1e6)

    def report(self) -> OstReport:
        return OstReport(
            "lustre",
            self.index,
            GIB,
            GIB,
            GIB,
            write_bytes=self.size,
            write_samples=self.writes,
            write_usecs=self.usecs,
            counters_start_s=self.start_s,
        )


class Bench(Watched[Ost]):
    def __init__(self, count: int = 8) -> None:
        super().__init__([Ost(index) for index in range(count)], INTERVAL_S)

    def write_all(self, size_bytes: int = GIB) -> None:
        for ost in self.osts:
            ost.write(size_bytes)
        self.tick()

    def speeds(self) -> dict[int, float]:
        return {i: e.write_bytes_per_s for i, e in self.finder.estimates().items()}


def test_one_ost_at_a_tenth_of_the_speed_shows_a_tenth() -> None:
    bench = Bench()
    bench.osts[3].speed = FULL / 10
    bench.write_all()
    bench.write_all()
    speeds = bench.speeds()
    assert speeds.pop(3) == pytest.approx(FULL / 10, rel=0.01)
    assert all(speed == pytest.approx(FULL, rel=0.01) for speed in speeds.values())
    latency = {i: e.write_latency_s for i, e in bench.finder.estimates().items()}
    assert latency[3] == pytest.approx(10 * latency[0], rel=0.01)


@given(st.lists(st.integers(16 * MIB, 4 * GIB), min_size=8, max_size=8))
def test_how_much_was_written_does_not_matter(sizes: list[int]) -> None:
    bench = Bench()
    bench.osts[3].speed = FULL / 10
    for _ in range(3):
        for ost, size in zip(bench.osts, sizes):
            ost.write(size, each_bytes=MIB)
        bench.tick()
        bench.speeds()
    assert bench.speeds()[3] == pytest.approx(FULL / 10, rel=0.07)


@pytest.mark.parametrize(
    ("size", "each"),
    [(0, 1), (4 * KIB, 4 * KIB), (8 * MIB, 8 * MIB), (32 * MIB, 4 * KIB), (64 * MIB, 64 * MIB)],
)
def test_an_ost_with_too_little_to_judge_is_not_slow(size: int, each: int) -> None:
    bench = Bench()
    odd = bench.osts[3]
    bench.osts.remove(odd)
    bench.write_all()
    bench.osts.append(odd)
    bench.tick()
    odd.speed = FULL / 100
    if size:
        odd.write(size, each)
    bench.tick()
    assert 3 not in bench.speeds() and len(bench.speeds()) == 7


def test_nothing_is_known_at_first() -> None:
    bench = Bench()
    assert bench.speeds() == {}
    bench.write_all()


def test_noise_between_equal_osts_is_no_difference() -> None:
    bench = Bench(16)
    noise = random.Random(7)
    for _ in range(INTERVALS):
        for ost in bench.osts:
            ost.speed = FULL * noise.uniform(0.75, 1.3)
        bench.write_all()
    assert len(set(bench.speeds().values())) == 1


def test_one_bad_interval_is_not_a_bad_ost() -> None:
    bench = Bench()
    bench.write_all()
    bench.write_all()
    bench.osts[3].speed = FULL / 20
    bench.write_all()
    assert bench.speeds()[3] == pytest.approx(FULL, rel=0.01)


def test_a_recovered_ost_is_back_after_two_good_intervals() -> None:
    bench = Bench()
    bench.osts[3].speed = FULL / 45
    for _ in range(INTERVALS):
        bench.write_all()
    assert bench.speeds()[3] < FULL / 40
    bench.osts[3].speed = FULL
    for _ in range(2):
        bench.write_all()
    assert bench.speeds()[3] == pytest.approx(FULL, rel=0.01)


@pytest.mark.parametrize("same_start", [True, False])
def test_counters_that_began_anew_count_from_zero(same_start: bool) -> None:
    bench = Bench()
    bench.write_all(4 * GIB)
    for ost in bench.osts:
        ost.size = ost.writes = ost.usecs = 0
        ost.start_s += not same_start
        ost.speed = FULL / 4
    for _ in range(INTERVALS):
        bench.write_all(GIB)
    assert bench.speeds()[0] == pytest.approx(FULL / 4, rel=0.01)


def test_a_server_without_service_times_gives_no_estimate() -> None:
    bench = Bench()
    for _ in range(3):
        for ost in bench.osts:
            ost.write(GIB)
            ost.usecs = 0
        bench.tick()
    assert bench.speeds() == {}


def test_few_writes_wait_for_more_of_their_kind() -> None:
    bench = Bench()
    for _ in range(4):
        assert bench.speeds() == {}
        bench.write_all(20 * MIB)
    assert bench.speeds()[0] == pytest.approx(FULL, rel=0.01)


def test_the_few_writes_of_the_captured_series_make_no_ost_slow(series: Series) -> None:
    # Six writes of 2 MiB on each OST, whose mean service times differ by a factor of 2.5, all healthy.
    collector = Collector(series.root, "oss1")
    finder = SlowOstFinder("lustre")
    for moment in series.MOMENTS:
        now = series.set(moment)
        for ost in collector.collect(now).osts:
            finder.update_server([ost], now)
        assert all(e.relative == 1 for e in finder.estimates().values())


def test_a_slow_ost_stays_slow_for_as_long_as_nothing_else_is_seen() -> None:
    bench = Bench()
    bench.osts[3].speed = FULL / 100
    for _ in range(INTERVALS):
        bench.write_all()
    for _ in range(24 * 60):
        bench.tick()
    assert bench.speeds()[3] == pytest.approx(FULL / 100, rel=0.01)
    bench.osts[3].speed = FULL
    for _ in range(2):
        bench.write_all()
    assert bench.speeds()[3] == pytest.approx(FULL, rel=0.01)
