"""First step: convex min-cost flow per group of like components, largest objects first.

The network of the paper (source → OSS → OST → sink) with parallel arcs of capacity 1 whose costs rise: the
k-th object on an OST costs the OST's level (`marginal_cost.py`) in the middle of that object, the k-th on an OSS its
own, much smaller, term. So the cheapest flow is the balance itself instead of filling the cheapest OST first.
"""

from __future__ import annotations

import numpy as np

from tarazu.allocate import bounds
from tarazu.allocate.draft import Draft, ring, stride
from tarazu.allocate.eligible import too_little_space
from tarazu.allocate.problem import Array, Group
from tarazu.allocate.waves import alternating
from tarazu.errors import InsufficientResources
from tarazu.flows import min_cost_flow

OSS_BALANCE = 0.1
"""Levels per mean bytes per OST on one OSS: spreads over servers what is equal on OSTs, and no more."""
COST_SCALE = 1 << 20
"""Integer cost of one level; ties are broken below it."""
HIGHEST_LEVEL = 1e5
"""Levels above cost the same: OSTs of last resort; keeps costs within the solvers' range."""
TIE_STEPS = 64
RELAXED = 1e-9
"""Relative precision of the common level around which the flow looks."""
ORDERED_OBJECTS = 20_000
"""Up to so many objects of a group, each member's heavier objects go to the emptier of its OSTs one by one."""


def place(draft: Draft) -> None:
    """Give every group its OSTs. Raises InsufficientResources when they do not fit."""
    groups = draft.problem.groups
    parts = {
        number: _place(draft, groups[number])
        for number in np.argsort([-g.unit for g in groups], kind="stable")
    }
    draft.problem.groups = [part for number in range(len(groups)) for part in parts[number]]
    draft.bound = bounds.utilization_of(draft.problem)


def _place(draft: Draft, group: Group) -> list[Group]:
    """The group with its OSTs; in parts where members of several sizes do not fit when each counts as the largest."""
    try:
        counts = _counts(draft, group)
    except InsufficientResources:
        halves = group.halves()
        if not halves:
            raise
        return [part for half in halves for part in _place(draft, half)]
    deal(draft, group, counts)
    draft.placed += np.bincount(group.osts.ravel(), group.weights.ravel(), len(draft.placed))
    return [group]


def _counts(draft: Draft, group: Group) -> Array:
    """Objects of `group` per OST: the cheapest flow."""
    problem, levels, placed = draft.problem, draft.levels, draft.placed
    members, stripes = group.weights.shape
    need = members * stripes
    largest = float(group.weights.max())
    fits = np.floor((levels.room - placed) / largest + 1e-9).clip(0, members).astype(np.int64)
    fits[~problem.eligible[group.eligible]] = 0
    if fits.sum() < need or np.count_nonzero(fits) < stripes:
        short = np.flatnonzero((fits == 0) & problem.eligible[group.eligible])
        where = f"file system {problem.view.fs_name}"
        indices = [problem.osts[i].index for i in short]
        raise too_little_space(where, need, int(largest), int(fits.sum()), indices)
    around = _relaxed(draft, group.unit, need, fits)
    margin = 2
    while True:
        low = np.maximum(0, around - margin)
        high = np.minimum(fits, around + margin)
        counts, inside = _window(draft, group.unit, need, low, high)
        free = (low == 0) | (counts > low)
        open_above = (high == fits) | (counts < high)
        if inside and free.all() and open_above.all():
            return counts
        margin *= 4


def _relaxed(draft: Draft, unit: float, need: int, fits: Array) -> Array:
    """Counts without the OSS term: as many objects on each OST as have their middle below one common level."""

    def counts(level: float) -> Array:
        middles = (draft.levels.bytes_below(level) - draft.placed) / unit + 0.5
        below: Array = np.minimum(np.maximum(0, np.floor(middles + 1e-9)).astype(np.int64), fits)
        return below

    low = 0.0
    high = max(1.0, float(draft.levels.at(draft.placed).max()))
    while counts(high).sum() < need:
        low, high = high, high * 2
    while high - low > RELAXED * high:
        middle = (low + high) / 2
        below = int(counts(middle).sum())
        if below >= need:
            high = middle
        else:
            low = middle
        if below == need:
            break
    return counts(high)


def _window(draft: Draft, unit: float, need: int, low: Array, high: Array) -> tuple[Array, bool]:
    """The flow with each OST's count between `low` and `high`; False when these bounds cannot hold it."""
    problem = draft.problem
    spare = int(need - low.sum())
    if spare < 0 or spare > int((high - low).sum()):
        return low, False
    if spare == 0:
        return low, bool((low == 0).all())
    osts = len(problem.osts)
    servers = len(problem.oss_names)
    ost_of_arc = np.repeat(np.arange(osts), high - low)
    nth = np.arange(len(ost_of_arc)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    middle = draft.placed[ost_of_arc] + (low[ost_of_arc] + nth + 0.5) * unit
    rank = draft.rank()
    tie = rank[ost_of_arc] * TIE_STEPS // osts
    level_of_arc = draft.levels.at(middle, ost_of_arc).clip(None, HIGHEST_LEVEL)
    ost_costs = np.rint(level_of_arc * COST_SCALE).astype(np.int64) * TIE_STEPS + tie
    oss_of_arc, oss_costs = _oss_arcs(draft, unit, low, high)
    # Nodes: 0 source, 1.. servers, then OSTs, then the sink.
    ost_nodes = 1 + servers + np.arange(osts)
    sink = 1 + servers + osts
    tails = np.concatenate([np.zeros(len(oss_of_arc), np.int64), 1 + problem.oss[ost_of_arc], ost_nodes])
    heads = np.concatenate([1 + oss_of_arc, ost_nodes[ost_of_arc], np.full(osts, sink)])
    capacities = np.ones(len(tails), np.int64)
    capacities[-osts:] = high - low
    costs = np.concatenate([oss_costs, ost_costs, np.zeros(osts, np.int64)])
    supplies = np.zeros(sink + 1, np.int64)
    supplies[0], supplies[sink] = spare, -spare
    flow = min_cost_flow(tails, heads, capacities, costs, supplies, draft.solver)
    return low + flow[-osts:], True


def _oss_arcs(draft: Draft, unit: float, low: Array, high: Array) -> tuple[Array, Array]:
    """Arcs source → OSS: the n-th object on a server costs its bytes per OST, in mean bytes per OST."""
    problem = draft.problem
    servers = len(problem.oss_names)
    size = np.bincount(problem.oss, minlength=servers)
    bytes_now = np.bincount(problem.oss, draft.placed + draft.lately + low * unit, servers)
    arcs = np.bincount(problem.oss, high - low, servers).astype(np.int64)
    oss_of_arc = np.repeat(np.arange(servers), arcs)
    nth = np.arange(len(oss_of_arc)) - np.repeat(np.cumsum(arcs) - arcs, arcs)
    mean = max(1.0, problem.total_bytes / len(problem.osts))
    filled = (bytes_now[oss_of_arc] + (nth + 0.5) * unit) / (size[oss_of_arc] * mean)
    costs = np.rint(OSS_BALANCE * filled * COST_SCALE).astype(np.int64) * TIE_STEPS
    return oss_of_arc, costs


def deal(draft: Draft, group: Group, counts: Array) -> None:
    """Deal the multiset of OSTs to the members: no member gets an OST twice.

    Where few are to meet: round after round, each from server to server and those first that have most, so that few
    members share an OST with others, and the rest are not held up by them. Else, and where that would give an OST
    twice, or waves differ: one card each in turn. OSTs are sorted by server, so the cards of one member, evenly spaced,
    spread over the servers too; and members of different waves alternate, so that each wave gets its share of the cards
    of every OST.
    """
    members, stripes = group.weights.shape
    waves = np.ptp(draft.problem.waves[group.requests])
    if draft.few_meet and not waves and not np.ptp(group.weights, axis=1).any():
        place = (ring(draft.problem.oss) - draft.turn) % len(counts)
        cards = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(cards)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = cards[np.lexsort((place[cards], -counts[cards], nth))].reshape(members, stripes)
        in_order = np.sort(rows, axis=1)
        if not (in_order[:, 1:] == in_order[:, :-1]).any():
            group.osts = rows
            return
    order = np.roll(np.argsort(draft.problem.oss, kind="stable"), -draft.turn)
    cards = np.repeat(order, counts[order])
    # Where nothing is known of times, files that come one after the other are taken to be written together: they get
    # rows that lie far apart. Where members are alike their lists can still change places in the end.
    turns = np.arange(members) * stride(members) % members
    of_wave = draft.problem.waves[group.requests]
    if np.ptp(of_wave) and np.ptp(group.weights, axis=0).any():
        turns = np.argsort(alternating(of_wave))
    rows = cards.reshape(stripes, members).T[turns]
    # Each member starts elsewhere in its row, so that first stripes are spread as well.
    start = (np.arange(members) + draft.turn) % stripes
    rows = np.take_along_axis(rows, (np.arange(stripes) + start[:, None]) % stripes, axis=1)
    if stripes > 1 and members * stripes <= ORDERED_OBJECTS and np.ptp(group.weights, axis=1).any():
        placed = draft.placed.copy()
        for row, weights in zip(rows, group.weights):
            emptiest = np.argsort(draft.levels.at(placed[row], row), kind="stable")
            heaviest = np.argsort(-weights, kind="stable")
            row[heaviest] = row[emptiest]
            placed[row] += weights
    group.osts = rows
