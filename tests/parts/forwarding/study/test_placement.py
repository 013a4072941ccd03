"""Each placer of the paper does what the paper says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.study.policies.placers import LeastStressed, RandomPlacement, RoundRobin

LEVEL = curve([(1, 1e9)])


def several(count: int, volume: float = 1e10) -> list[Application]:
    return [Application(str(i), 1, LEVEL, 10, volume) for i in range(count)]


def test_gnc_goes_round_with_the_widest_first() -> None:
    placed = RoundRobin().place(several(3), (1, 3, 2), Resources("ost", 4, 480)).placed
    assert placed == ((1,), (0, 1, 2), (0, 3))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(counts=st.lists(st.integers(1, 7), min_size=1, max_size=30))
def test_gnc_has_as_many_applications_on_each(counts: list[int]) -> None:
    placed = RoundRobin().place(several(len(counts)), counts, Resources("ost", 7, 480)).placed
    on = [sum(r in p for p in placed) for r in range(7)]
    assert max(on) - min(on) <= 1


def test_gc_puts_what_is_most_in_io_on_the_least_stressed() -> None:
    heavy, light = Application("heavy", 1, LEVEL, 1, 1e12), Application("light", 1, LEVEL, 100, 1e9)
    placed = LeastStressed().place([light, heavy, light], (2, 1, 1), Resources("ost", 3, 480)).placed
    assert placed == ((1, 2), (0,), (1,))


def test_randp_reaches_every_resource() -> None:
    placed = RandomPlacement(1).place(several(200), (2,) * 200, Resources("ost", 5, 480)).placed
    assert {r for p in placed for r in p} == set(range(5))
    assert len(set(placed)) == 10
