"""What is usual for an OST: learned, forgotten, bounded."""

from __future__ import annotations

import pytest

from tarazu.stats.evidence import Evidence
from tarazu.stats.usual import CELLS, HALF_LIFE_H, Usual, cell_of
from tarazu.units import KIB, MIB

KEY = ("lustre", 3, True)


def interval(
    at_s: float, one_s: float = 0.02, size: float = MIB, ios: int = 200, flight: float = 1.0
) -> Evidence:
    return Evidence(at_s - 60, at_s, "brw_stats", ios, int(ios * size), ios * one_s, flight, flight)


def learn(
    usual: Usual, hours: float, one_s: float = 0.02, weight: float = 1.0, begin_s: float = 0.0
) -> float:
    now = begin_s
    for _ in range(int(hours * 60)):
        now += 60
        usual.pass_time(now)
        usual.learn(KEY, interval(now, one_s), weight)
    return now


def test_what_was_seen_for_an_hour_is_usual() -> None:
    usual = Usual()
    assert usual.expected(KEY, interval(60)) is None
    now = learn(usual, 2)
    known = usual.expected(KEY, interval(now))
    assert known and 1 / known.rates[1] == pytest.approx(0.02, rel=0.01)
    assert known.mean_bytes == pytest.approx(MIB, rel=0.01) and known.hours == pytest.approx(2, abs=0.1)
    assert usual.expected(KEY, interval(now, flight=30)) == known, "the nearest number in flight"
    assert usual.expected(KEY, interval(now, size=4 * KIB)) is None, "nothing like it was seen"


def test_a_disk_that_is_slow_for_a_week_is_not_usual_and_a_new_one_is_after_months() -> None:
    usual = Usual()
    now = learn(usual, 14 * 24)
    now = learn(usual, 7 * 24, one_s=0.2, weight=0.05, begin_s=now)
    known = usual.expected(KEY, interval(now))
    assert known and 1 / known.rates[1] < 0.03
    learn(usual, 4 * HALF_LIFE_H, one_s=0.2, begin_s=now)
    known = usual.expected(KEY, interval(now))
    assert known and 1 / known.rates[1] == pytest.approx(0.2, rel=0.2)


def test_one_odd_interval_moves_little() -> None:
    usual = Usual()
    now = learn(usual, 24)
    usual.learn(KEY, interval(now + 60, 200.0))
    known = usual.expected(KEY, interval(now))
    assert known and 1 / known.rates[1] == pytest.approx(0.02, rel=0.1)


def test_another_source_begins_anew_and_a_source_without_queue_is_not_learned() -> None:
    usual = Usual()
    now = learn(usual, 2)
    usual.learn(KEY, interval(now)._replace(source="diskstats"))
    assert usual.expected(KEY, interval(now)) is None
    usual.learn(("lustre", 4, True), interval(now)._replace(source="obdfilter"))
    assert len(usual) == 1


def test_cells_hold_sizes_and_queues_apart() -> None:
    cells = {
        cell_of(interval(1, size=size, flight=flight))
        for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
        for flight in (1, 2, 8, 16, 64)
    }
    assert cells == set(range(CELLS))


def test_reports_that_come_late_make_no_time_pass_twice() -> None:
    usual = Usual()
    for at_s in (0.0, 60.0, 30.0, 120.0, 90.0, 180.0):
        usual.pass_time(at_s)
    assert usual.hours == pytest.approx(180 / 3600)
