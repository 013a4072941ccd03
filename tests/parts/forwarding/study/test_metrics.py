"""Metrics of schedules whose course can be told by hand, and what holds for any."""

from __future__ import annotations

import pytest

from tarazu.parts.forwarding.application import Application, Resources, Schedule
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.study.metrics import measure

FOUR = Resources("ost", 4, 10)
RISING = curve([(1, 1.0), (2, 2.0), (4, 3.0)])


def application(nodes: int = 1, cpu_s: float = 60.0, io_bytes: float = 40.0, phases: int = 2) -> Application:
    return Application("a", nodes, RISING, cpu_s, io_bytes, phases)


def test_one_alone_with_the_best_number_is_not_slowed_down() -> None:
    found = measure([application(nodes=5)], Schedule(((0, 1, 2, 3),)), FOUR, horizon_s=100.0)
    assert (found.mean_slowdown, found.rho_io) == (pytest.approx(1.0), pytest.approx(1.0))
    assert found.rho_con == pytest.approx(0.0)
    assert found.spread == pytest.approx(0.0)


def test_with_fewer_resources_the_slowdown_is_that_of_the_curve() -> None:
    found = measure([application()], Schedule(((2,),)), FOUR, horizon_s=500.0)
    assert found.mean_slowdown == pytest.approx(3.0)
    assert found.rho_io == pytest.approx(3.0)
    assert found.occupancy == pytest.approx((0.0, 0.0, 0.4, 0.0)), "30 s of computing, 20 s of I/O in turn"
    assert found.spread == pytest.approx(0.4)
    assert found.idletime == pytest.approx(0.4 * 1 / 10)


def test_two_at_the_same_time_on_one_resource_take_twice_as_long() -> None:
    both = [application(nodes=2), application(nodes=4)]
    found = measure(both, Schedule(((0,), (0,))), FOUR, horizon_s=700.0)  # 30 s, then 40 s
    assert found.mean_slowdown == pytest.approx(6.0)
    assert (found.rho_io, found.rho_con) == (pytest.approx(3.0), pytest.approx(3.0))
    assert found.occupancy[0] == pytest.approx(40 / 70)
    assert found.idletime == pytest.approx(6 / 10 * 40 / 70)


def test_the_slowest_transfer_ends_the_subphase() -> None:
    """The first is alone on resource 1 and not on 0: there it takes twice as long, and that is what counts."""
    first = Application("first", 1, curve([(1, 1.0), (2, 2.0)]), 30.0, 20.0, 1)
    second = Application("second", 1, curve([(1, 1.0)]), 30.0, 10.0, 1)
    found = measure([first, second], Schedule(((0, 1), (0,))), FOUR, horizon_s=500.0)
    assert found.mean_slowdown == pytest.approx(2.0)
    assert found.occupancy == pytest.approx((20 / 50, 10 / 50, 0, 0))


def test_the_interval_lasts_until_each_has_done_a_whole_phase() -> None:
    slow = application(io_bytes=4000.0, phases=1)
    found = measure([application(), slow], Schedule(((0,), (1,))), FOUR, horizon_s=100.0)
    assert found.interval_s == pytest.approx(60 + 4000)
    assert found.mean_slowdown == pytest.approx(3.0)


def test_what_does_no_io_is_not_slowed_down() -> None:
    found = measure([application(io_bytes=0.0)], Schedule(((0,),)), FOUR, horizon_s=100.0)
    assert (found.mean_slowdown, found.rho_con, found.idletime) == (1.0, 0.0, 0.0)


def test_what_does_nothing_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="computes or does I/O"):
        measure([application(cpu_s=0.0, io_bytes=0.0)], Schedule(((0,),)), FOUR)
