"""Calls come in the order of time, then in that in which they were put down."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.sim.kernel.calls import Calls

TIMES = st.lists(st.one_of(st.integers(0, 5).map(float), st.floats(0, 5)), max_size=30)


@settings(max_examples=50, deadline=None)
@given(TIMES, st.floats(0, 5))
def test_order_is_that_of_time_then_of_number(times: list[float], until_s: float) -> None:
    calls = Calls()
    found: list[tuple[float, int]] = []
    for number, time_s in enumerate(times):
        calls.at(time_s, lambda now, number: found.append((now, number)), number)
    whole = calls.run(until_s)
    assert found == sorted((time_s, number) for number, time_s in enumerate(times) if time_s <= until_s)
    assert whole == (len(found) == len(times))
    assert calls.run(), "what was left is called when it goes on"
    assert found == sorted((time_s, number) for number, time_s in enumerate(times))


def test_a_call_may_put_down_another_for_the_same_time() -> None:
    calls, found = Calls(), []

    def first(now: float, name: str) -> None:
        found.append(name)
        if name == "a":
            calls.at(now, first, "c")
            calls.at(now + 1, first, "d")

    calls.at(1.0, first, "a")
    calls.at(1.0, first, "b")
    assert calls.run(1.5) is False
    assert found == ["a", "b", "c"]
    assert calls.now == 1.5
    assert calls.run()
    assert found[-1] == "d" and calls.now == 2.0


def test_it_stops_when_it_is_told_to() -> None:
    calls = Calls()
    for at in (1.0, 2.0, 3.0):
        calls.at(at, lambda now, _: calls.stop() if now == 2.0 else None)
    assert calls.run(math.inf)
    assert calls.now == pytest.approx(2.0)
