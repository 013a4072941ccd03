"""Ranks in groups of equal size or traffic."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tarazu.parts.bursts.nodes.selection import even, ordered

ROOMS = st.lists(st.integers(0, 9), min_size=1, max_size=5)


def sums(shares: list[float], sizes: list[int]) -> list[float]:
    ends = list(itertools.accumulate(sizes, initial=0))
    return [sum(shares[a:b]) for a, b in itertools.pairwise(ends)]


def test_equal_groups_the_first_have_one_more() -> None:
    assert even(10, [9, 9, 9, 9]) == [3, 3, 2, 2]


def test_a_group_without_room_is_full_and_the_others_share_the_rest() -> None:
    assert even(10, [9, 1, 9]) == [5, 1, 4]


@given(ROOMS, st.data())
def test_even_groups_hold_all_and_differ_only_where_there_is_no_room(
    room: list[int], data: st.DataObject
) -> None:
    nodes = data.draw(st.integers(0, sum(room)))
    sizes = even(nodes, room)
    assert sum(sizes) == nodes
    for size, space in zip(sizes, room, strict=True):
        assert 0 <= size <= space
        assert size == space or size >= max(sizes) - 1


def test_ordered_groups_of_figure_13c() -> None:
    """Traffic that grows with the rank, two ranks an I/O node: the last rank is alone with the least that can be."""
    shares = [i / 4 for i in range(1, 5)]
    assert ordered(shares, [4, 4]) == [3, 1]
    assert max(sums(shares, even_sizes := even(4, [4, 4]))) == 1.75, even_sizes


def test_one_heavy_rank_does_not_gather_all_others_on_one_io_node() -> None:
    assert ordered([100.0, 1, 1, 1, 1, 1, 1], [9, 9, 9, 9]) == [1, 2, 2, 2]


@given(ROOMS, st.data())
def test_no_ordered_grouping_has_less_traffic_in_the_busiest_group(
    room: list[int], data: st.DataObject
) -> None:
    ranks = data.draw(st.integers(0, min(8, sum(room))))
    shares = data.draw(st.lists(st.integers(0, 20).map(float), min_size=ranks, max_size=ranks))
    sizes = ordered(shares, room)
    assert sum(sizes) == ranks
    assert all(0 <= size <= space for size, space in zip(sizes, room, strict=True))
    possible = [
        way for way in itertools.product(*(range(min(r, ranks) + 1) for r in room)) if sum(way) == ranks
    ]
    assert max(sums(shares, sizes)) <= min(max(sums(shares, list(way))) for way in possible) + 1e-6
