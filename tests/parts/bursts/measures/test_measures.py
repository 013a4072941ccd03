"""Closed forms, examples computed by hand, and what must hold of any distribution."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.bursts.measures.measures import (
    busiest,
    distribution,
    entropy,
    how_many,
    normalised_unevenness,
    unevenness,
)

weights = st.lists(st.one_of(st.integers(0, 2**62), st.floats(0, 1e300)), min_size=1, max_size=40)


def test_examples_computed_by_hand() -> None:
    assert entropy([1, 1, 2]) == pytest.approx(1.5 * log(2))  # 1/4, 1/4, 1/2: 1.5 bits
    assert unevenness([3, 1]) == pytest.approx(0.75 * log(1.5) + 0.25 * log(0.5))
    assert normalised_unevenness([3, 1]) == pytest.approx(
        1 - (2 - 0.75 * log(3) / log(2))
    )  # in bits, log n is 1
    assert normalised_unevenness([1, 1, 0, 0]) == pytest.approx(0.5)  # half of the places: 1 - log 2 / log 4


def test_one_place_and_no_traffic_are_even() -> None:
    assert normalised_unevenness([5]) == 0
    assert normalised_unevenness([0]) == 0
    assert normalised_unevenness([0, 0, 0]) == pytest.approx(0, abs=1e-12)  # log 3 - 3 (log 3) / 3
    assert entropy([0, 0]) == pytest.approx(log(2))


@pytest.mark.parametrize("bad", [[], [1, -1], [float("nan"), 1], [float("inf"), 1], [[1, 2], [3, 4]]])
def test_what_is_no_distribution_is_refused(bad: list[float]) -> None:
    for measure in (distribution, entropy, unevenness, normalised_unevenness):
        with pytest.raises(ValueError):
            measure(bad)


@settings(max_examples=50)
@given(weights, st.randoms(use_true_random=False), st.integers(1, 1000))
def test_within_bounds_and_the_same_in_any_order_and_unit(found: list[float], shuffled, unit: int) -> None:
    value = normalised_unevenness(found)
    assert 0 <= value <= 1
    other = [each / unit for each in found]
    shuffled.shuffle(other)
    if min((each for each in other if each), default=1) > 1e-290:  # else the division took digits
        assert normalised_unevenness(other) == pytest.approx(value, abs=1e-9)


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=30), st.data())
def test_moving_bytes_from_more_to_less_never_makes_it_less_even(
    found: list[int], data: st.DataObject
) -> None:
    low, high = int(np.argmin(found)), int(np.argmax(found))
    moved = data.draw(st.integers(0, (found[high] - found[low]) // 2))
    evener = list(found)
    evener[high] -= moved
    evener[low] += moved
    assert unevenness(evener) <= unevenness(found) + 1e-9


def test_the_busiest_share() -> None:
    assert busiest([1, 2, 3, 4, 0, 0, 0, 0, 0, 0], 0.2) == pytest.approx(0.7)
    assert busiest([0, 0, 0], 0.1) == 0
    assert busiest([8], 0.01) == 1
    # S: 1 % of 5,677 nodes, 20 % and 10 % of 89 cabinets
    assert [how_many(5677, 0.01), how_many(89, 0.2), how_many(89, 0.1), how_many(3, 0.01)] == [57, 18, 9, 1]
