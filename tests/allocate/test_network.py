"""The cheapest flow of a group's network: one sort finds what networkx finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.allocate import network
from tarazu.allocate.network import Network, by_networkx, by_sorting, cheapest
from tarazu.errors import InsufficientResources


@st.composite
def networks(draw: st.DrawFn) -> tuple[Network, int]:
    """Up to eight OSTs on up to four servers, costs that rise, some by nothing; and how many objects."""
    counts = np.array(draw(st.lists(st.integers(0, 5), min_size=1, max_size=8)))
    oss = np.array(draw(st.lists(st.integers(0, 3), min_size=len(counts), max_size=len(counts))))
    arcs = int(counts.sum())
    steps = np.array(draw(st.lists(st.integers(0, 9), min_size=2 * arcs, max_size=2 * arcs)), np.int64)
    rising = []
    for number, of in zip(steps.reshape(2, -1), (counts, np.bincount(oss, counts, 4).astype(np.int64))):
        parts = np.split(number, np.cumsum(of)[:-1])
        rising.append(np.concatenate([np.cumsum(part) for part in parts]))
    return Network(oss, counts, *rising), draw(st.integers(0, arcs))


def cost(of: Network, placed: np.ndarray) -> int:
    servers = np.bincount(of.oss, of.counts, 4).astype(np.int64)
    total = 0
    for costs, arcs, used in (
        (of.ost_costs, of.counts, placed),
        (of.oss_costs, servers, np.bincount(of.oss, placed, 4).astype(np.int64)),
    ):
        assert (used <= arcs).all()
        first = np.cumsum(arcs) - arcs
        total += sum(int(costs[at : at + n].sum()) for at, n in zip(first.tolist(), used.tolist()))
    return total


@settings(max_examples=2_000, derandomize=True)
@given(wanted=networks())
def test_one_sort_finds_the_lowest_cost_that_networkx_finds(wanted: tuple[Network, int]) -> None:
    of, objects = wanted
    by_sort, by_simplex = by_sorting(of, objects), by_networkx(of, objects)
    assert by_sort.sum() == by_simplex.sum() == objects
    assert cost(of, by_sort) == cost(of, by_simplex)


def test_more_than_there_are_arcs_is_later() -> None:
    of = Network(np.array([0, 1]), np.array([2, 1]), np.array([0, 1, 0]), np.array([0, 0, 0]))
    with pytest.raises(InsufficientResources, match="capacity for 4 stripes"):
        by_networkx(of, 4)


def test_networkx_is_asked_up_to_its_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Network(np.array([0, 0, 1]), np.array([3, 3, 3]), np.tile(np.arange(3), 3), np.arange(9))
    asked = []
    monkeypatch.setattr(network, "by_networkx", lambda *of: asked.append(of) or by_networkx(*of))
    for most, times in ((18, 1), (17, 0)):
        asked.clear()
        monkeypatch.setattr(network, "NETWORKX_ARCS", most)
        assert cheapest(of, 4).sum() == 4
        assert len(asked) == times
