"""Third step: the search for fillings where exchanges may have missed the optimum: few object sizes."""

from __future__ import annotations

import numpy as np

from tarazu.allocate import bounds, packing
from tarazu.allocate.dealing import deal
from tarazu.allocate.draft import Draft, ring
from tarazu.allocate.marginal_cost import Levels
from tarazu.allocate.packing import Packing
from tarazu.allocate.problem import Array, Group

NEAR = 1e-3
"""Relative distance from the lowest level that may be possible from which a search is worth its time."""
TOLERANCE = 2e-4
"""The same for the end of the search."""
NEAR_UNEQUAL = TOLERANCE_UNEQUAL = 4e-3
"""Both where OSTs are not equal: each has fillings of its own, and a question takes longer."""
MOST_DEALT = 20_000_000
"""Objects times files of a kind up to which a filling can be dealt to the files in time: about two seconds."""
MERGED = 1e-3
"""Share of all bytes by which objects may be taken for larger than they are, so that unequal OSTs have few fillings."""


def pack(draft: Draft) -> None:
    """Replace the draft by the best filling that the search finds, if that has a lower highest level."""
    problem, levels = draft.problem, draft.levels
    if not problem.groups or not all(map(_equal_rows, problem.groups)):
        return
    if sum(group.weights.size * len(group.requests) for group in problem.groups) > MOST_DEALT:
        return
    filling = None
    if levels.equal:
        mean = problem.total_bytes / len(problem.osts)
        lowest, highest = draft.bound * mean, float(draft.placed.max())
        if highest > lowest * (1 + NEAR):
            of_bytes = Levels.of_bytes(len(problem.osts), levels.room)
            _, filling = packing.pack(problem, of_bytes, lowest, highest, TOLERANCE)
    else:
        lowest, highest = draft.even(), float(levels.at(draft.placed).max())
        if highest > lowest * (1 + NEAR_UNEQUAL):
            rate = 1 / levels.slope
            lowest = bounds.lowest_level(problem, rate, levels.base * rate, TOLERANCE_UNEQUAL / 100)
        if highest > lowest * (1 + NEAR_UNEQUAL):
            _, filling = packing.pack(problem, levels, lowest, highest, TOLERANCE_UNEQUAL, MERGED)
    if filling is not None:
        _adopt(draft, filling)


def _equal_rows(group: Group) -> bool:
    """True when all members have the same sizes: what `deal` needs."""
    return not np.ptp(np.sort(group.weights, axis=1), axis=0).any()


def _adopt(draft: Draft, chosen: Packing) -> None:
    dealt = deal(chosen.objects, _on_servers(draft, chosen))
    if dealt is None:
        return
    groups = draft.problem.groups
    before, placed = [group.osts for group in groups], draft.placed
    for group, osts in zip(groups, dealt):
        group.osts = osts
    bytes_of = [np.bincount(g.osts.ravel(), g.weights.ravel(), len(placed)) for g in groups]
    draft.placed = np.sum(bytes_of, axis=0)
    if draft.levels.at(draft.placed).max() >= draft.levels.at(placed).max():
        draft.placed = placed
        for group, osts in zip(groups, before):
            group.osts = osts


def _on_servers(draft: Draft, chosen: Packing) -> Array:
    """The fillings in an order that lets servers be even: of OSTs of one kind, the fullest go from server to server."""
    turn = (ring(draft.problem.oss) - draft.turn) % len(draft.placed)
    loads = chosen.counts @ chosen.objects.sizes
    counts = np.empty_like(chosen.counts)
    counts[np.lexsort((turn, chosen.kinds))] = chosen.counts[np.lexsort((-loads, chosen.kinds))]
    return counts
