from __future__ import annotations

import pytest

from tarazu.parts.forwarding.application import io_s
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.profile import application, io_time_s
from tarazu.trace.phases.phase import Phase
from tests.parts.forwarding.strategies import phase as any_phase


def phase(start: float, end: float, busy: float | None = None, size: int = 100) -> Phase:
    return any_phase(start_s=start, end_s=end, io_s=end - start if busy is None else busy, bytes=size)


def test_what_is_no_io_is_computing() -> None:
    found = application("a", 8, [phase(10, 20), phase(60, 70)], 100, curve([(1, 1.0), (4, 10.0)]))
    assert (found.cpu_s, found.io_bytes, found.phases, found.nodes) == (80, 200, 2, 8)
    assert io_s(found, 4) == 20


def test_phases_at_the_same_time_are_counted_once() -> None:
    assert io_time_s([phase(0, 10), phase(5, 12), phase(20, 21)]) == 13
    assert io_time_s([phase(0, 10, busy=1), phase(5, 12, busy=2)]) == 3
    assert application("a", 1, [phase(0, 1), phase(1.5, 2)], 10, curve([(1, 1.0)])).phases == 1


def test_files_that_stay_open_are_no_io_all_the_time() -> None:
    found = application("a", 1, [phase(0, 1000, size=100)], 1000, curve([(1, 10.0), (2, 20.0)]))
    assert found.cpu_s == 990


@pytest.mark.parametrize("duration", [0.0, 5.0])
def test_a_run_that_is_all_io_has_no_computing(duration: float) -> None:
    assert application("a", 0, [phase(0, 10)], duration, curve([(1, 1.0)])).cpu_s == 0
