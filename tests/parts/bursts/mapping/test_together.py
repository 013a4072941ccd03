"""The mapping that learns which nodes burst together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import InsufficientResources
from tarazu.parts.bursts.mapping.history import TrafficHistory, learn
from tarazu.parts.bursts.mapping.judge import judge
from tarazu.parts.bursts.mapping.simple import moved, round_robin
from tarazu.parts.bursts.mapping.together import MappingOptions, cheapest, concentration, together
from tarazu.parts.bursts.traffic.machine import Machine, regular
from tests.parts.bursts.mapping.traffic import traffic

MACHINE = regular(96, 12)
"""8 I/O nodes."""
RECURRING = dict.fromkeys(range(0, 96, 8), 100)
"""A service's nodes, which i % 8 has on one I/O node."""


def history(bursts: list[dict[int, int]], machine: Machine = MACHINE) -> TrafficHistory:
    return learn([traffic(machine, bursts)], machine)


@settings(max_examples=20)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 10_000))
def test_the_flow_finds_the_cheapest_deal(nodes: int, io_nodes: int, seed: int) -> None:
    """Against all deals there are."""
    rng = np.random.default_rng(seed)
    costs, room = rng.integers(0, 50, (nodes, io_nodes)).astype(float), rng.integers(0, 3, io_nodes)
    deals = [
        deal
        for deal in np.ndindex(*([io_nodes] * nodes))
        if (np.bincount(deal, minlength=io_nodes) <= room).all()
    ]
    if not deals:
        with pytest.raises(InsufficientResources):
            cheapest(costs, room)
        return
    found = cheapest(costs, room)
    assert (np.bincount(found, minlength=io_nodes) <= room).all()
    best = min(sum(costs[n, k] for n, k in enumerate(deal)) for deal in deals)
    assert costs[np.arange(nodes), found].sum() == pytest.approx(best)


def test_what_bursts_together_again_and_again_is_spread() -> None:
    """12 nodes that i % 8 has on one I/O node come to lie on all 8."""
    found = together(history([RECURRING] * 30), MACHINE, options=MappingOptions(shifted=0))
    counts = np.bincount(found[list(RECURRING)], minlength=8)
    assert counts.max() == 2 and counts.min() == 1
    assert np.bincount(found).tolist() == [12] * 8


def test_learned_on_earlier_days_it_is_better_on_later_ones() -> None:
    """Beside jobs that run anywhere, of which i % n knows all there is."""
    rng = np.random.default_rng(5)

    def day() -> list[dict[int, int]]:
        jobs = [dict.fromkeys(range(at, at + 8), 20) for at in rng.integers(0, 88, 60).tolist()]
        return [RECURRING | job for job in jobs]

    learned = together(history([*day(), *day()]), MACHINE, options=MappingOptions(shifted=0))
    later = [traffic(MACHINE, day())]
    found = judge({"learned": learned, "i % n": round_robin(96, 8)}, later, MACHINE)
    assert found["learned"].busiest_share < 0.4 * found["i % n"].busiest_share


def test_where_history_tells_nothing_it_is_round_robin() -> None:
    """Jobs on neighbours, never twice on the same ones; the groups keep as many nodes as they can."""
    jobs = [
        dict.fromkeys(range(at, at + 8), 20) for at in np.random.default_rng(1).integers(0, 88, 60).tolist()
    ]
    found = together(history(jobs), MACHINE)
    for group in range(8):
        assert len(set(round_robin(96, 8)[found == group])) == 1
    assert moved(MACHINE.served_by, found) <= moved(MACHINE.served_by, round_robin(96, 8))


def test_no_history() -> None:
    found = together(history([]), MACHINE, round_robin(96, 8)[::-1].copy())
    assert found.tolist() == round_robin(96, 8)[::-1].tolist(), "the same groups, and none is moved"


@settings(max_examples=6)
@given(
    st.lists(st.dictionaries(st.integers(0, 95), st.integers(1, 100), max_size=20), max_size=12),
    st.one_of(st.none(), st.integers(0, 96)),
)
def test_each_io_node_keeps_its_number_and_few_are_moved(
    bursts: list[dict[int, int]], moves: int | None
) -> None:
    learned = history(bursts)
    found = together(learned, MACHINE, options=MappingOptions(moves=moves, shifted=1))
    assert np.bincount(found, minlength=8).tolist() == [12] * 8
    if moves is not None:
        assert moved(MACHINE.served_by, found) <= moves


def test_few_moves_are_those_that_help_most() -> None:
    present = round_robin(96, 8)
    learned = history([RECURRING] * 30)
    before = concentration(learned, present, 8)
    some = together(learned, MACHINE, present, MappingOptions(moves=24, shifted=0))
    assert moved(present, some) <= 24
    assert concentration(learned, some, 8) < 0.6 * before


def test_deals_stop_when_the_time_is_over() -> None:
    found = together(history([RECURRING] * 30), MACHINE, options=MappingOptions(longest_s=0.0))
    assert np.bincount(found).tolist() == [12] * 8
