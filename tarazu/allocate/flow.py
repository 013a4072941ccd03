"""First step: convex min-cost flow per group of like components, largest objects first.

The network of the paper (source → OSS → OST → sink) with parallel arcs of capacity 1 whose costs rise: the
k-th object on an OST costs the OST's level (`marginal_cost.py`) in the middle of that object, the k-th on an OSS its
own, much smaller, term. So the cheapest flow is the balance itself instead of filling the cheapest OST first. Only arcs
near the common level are in question: what lies well below it is taken, what lies well above is not.
"""

from __future__ import annotations

import numpy as np

from tarazu.allocate.draft import Draft, ring, stride
from tarazu.allocate.eligible import too_little_space
from tarazu.allocate.problem import Array, Group
from tarazu.errors import InsufficientResources
from tarazu.flows import Solver, expected_s, min_cost_flow

OSS_BALANCE = 0.1
"""Levels per mean bytes per OST on one OSS: spreads over servers what is equal on OSTs, and no more."""
COST_SCALE = 1 << 20
"""Integer cost of one level; ties are broken below it."""
HIGHEST_LEVEL = 1e5
"""Levels above cost the same: OSTs of last resort; keeps costs within the solvers' range."""
TIE_STEPS = 64
MANY_ARCS = 2
"""For each OST, from which on the servers' part is looked at beforehand: less is in question then."""
NEVER = 2**60
"""The cost of an object that does not fit."""
RELAXED = 1e-9
"""Relative precision of the common level around which the flow looks, at least."""
ORDERED_OBJECTS = 20_000
"""Up to so many objects of a group, each member's heavier objects go to the emptier of its OSTs one by one."""


def place(draft: Draft) -> None:
    """Give every group its OSTs. Raises InsufficientResources when they do not fit."""
    groups = draft.problem.groups
    ties = draft.rank() * TIE_STEPS // len(draft.placed)
    parts = {
        number: _place(draft, groups[number], ties)
        for number in np.argsort([-g.unit for g in groups], kind="stable")
    }
    draft.problem.groups = [part for number in range(len(groups)) for part in parts[number]]


def _place(draft: Draft, group: Group, ties: Array) -> list[Group]:
    """The group with its OSTs; in parts where members of several sizes do not fit when each counts as the largest."""
    try:
        counts = _counts(draft, group, ties)
    except InsufficientResources:
        halves = group.halves()
        if not halves:
            raise
        return [part for half in halves for part in _place(draft, half, ties)]
    deal(draft, group, counts)
    draft.placed += np.bincount(group.osts.ravel(), group.weights.ravel(), len(draft.placed))
    return [group]


def _counts(draft: Draft, group: Group, ties: Array) -> Array:
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
    costs = _Costs(draft, group.unit, fits)
    level, margin = costs.around(need)
    if (costs.below(level + margin) - costs.below(level - margin)).sum() > MANY_ARCS * len(placed):
        costs.add_servers(costs.below(level))
        level, margin = costs.around(need)
    while True:
        low, high = (costs.below(level + by).astype(np.int64) for by in (-margin, margin))
        spare, arcs = int(need - low.sum()), int((high - low).sum())
        if 0 <= spare <= arcs:
            if draft.left_s < expected_s(2 * arcs, draft.solver):
                # Servers are left to chance then: OSTs hold up a job first.
                return _cheapest(costs, low, high, spare, ties)
            counts = _flow(costs, low, high, spare, ties, draft.solver)
            if costs.lowest(counts):
                return counts
        margin *= 4


class _Costs:
    """What one object more of a group costs on each OST, and on each server; in levels, and as whole numbers."""

    def __init__(self, draft: Draft, unit: float, fits: Array) -> None:
        problem = draft.problem
        self.fits, self.oss = fits, problem.oss
        self.servers = len(problem.oss_names)
        self._levels, self._unit = draft.levels, unit
        self._first = draft.placed + unit / 2
        # How many objects have their middle below a level, as two lines in the level.
        levels = draft.levels
        self._rise = 1 / (levels.slope * unit)
        self._rise2 = 1 / (levels.slope2 * unit)
        nothing = draft.placed / unit - 0.5 - 1e-9
        self._from = levels.base * self._rise + nothing
        self._from2 = levels.base2 * self._rise2 + nothing
        mean = max(1.0, problem.total_bytes / len(problem.osts))
        per_byte = OSS_BALANCE / (np.bincount(self.oss, minlength=self.servers) * mean)
        bytes_now = np.bincount(self.oss, draft.placed + draft.lately, self.servers)
        self._step = unit * per_byte
        """(servers,) levels by which an object costs more than the one before."""
        self._start = bytes_now * per_byte + self._step / 2
        self._servers_part: Array | float = 0.0
        """(n,) levels that are taken for what an OST's server costs."""

    def below(self, level: float) -> Array:
        """(n,) as many objects on each OST as have their middle at `level` or below, in whole numbers."""
        of_ost = level - self._servers_part
        nth = np.minimum(of_ost * self._rise - self._from, of_ost * self._rise2 - self._from2)
        counts: Array = np.minimum(np.maximum(np.floor(nth, out=nth), 0.0, out=nth), self.fits)
        return counts

    def around(self, need: int) -> tuple[float, float]:
        """The level up to which OSTs take `need` objects, and how far from it those may lie that are in question."""
        low, high = 0.0, 1.0
        while self.below(high).sum() < need:
            low, high = high, high * 2
        precision = float(self._step.min())
        while high - low > max(precision, RELAXED * high):
            middle = (low + high) / 2
            low, high = (low, middle) if self.below(middle).sum() >= need else (middle, high)
        off = self._of_servers(self.below(high))[self.oss] - self._servers_part
        return high, high - low + float(off.max() - off.min() + self._step.max())

    def add_servers(self, counts: Array) -> None:
        """Take for each server's part what it is with so many objects on each OST."""
        part = self._of_servers(counts)[self.oss]
        self._servers_part = part - part.mean()

    def _of_servers(self, counts: Array) -> Array:
        """(servers,) levels of one object more."""
        level: Array = self._start + self._step * np.bincount(self.oss, counts, self.servers)
        return level

    def by_server(self, counts: Array) -> Array:
        return np.bincount(self.oss, counts, self.servers).astype(np.int64)

    def nth(self, nth: Array, osts: Array | slice = slice(None)) -> Array:
        """Cost of the n-th object, from 0 on, on each of these OSTs."""
        level = self._levels.at(self._first[osts] + nth * self._unit, osts)
        cost: Array = np.rint(np.minimum(level, HIGHEST_LEVEL) * COST_SCALE).astype(np.int64)
        return cost

    def nth_of_server(self, nth: Array, servers: Array | slice = slice(None)) -> Array:
        cost: Array = np.rint((self._start[servers] + nth * self._step[servers]) * COST_SCALE).astype(
            np.int64
        )
        return cost

    def lowest(self, counts: Array) -> bool:
        """Whether no object would cost less elsewhere."""
        last, more = np.full(self.servers, -1), np.full(self.servers, NEVER)
        np.maximum.at(last, self.oss, np.where(counts > 0, self.nth(counts - 1), -1))
        np.minimum.at(more, self.oss, np.where(counts < self.fits, self.nth(counts), NEVER))
        of_server = self.by_server(counts)
        leaving = np.where(last >= 0, last + self.nth_of_server(of_server - 1), -1)
        coming = more + self.nth_of_server(of_server)
        return bool((last <= more).all() and leaving.max() <= coming.min())


def _arcs(costs: _Costs, low: Array, high: Array, ties: Array) -> tuple[Array, Array]:
    """(arcs,) OST, and cost, of each object between `low` and `high`, one OST after the other."""
    counts = high - low
    osts = np.repeat(np.arange(len(low)), counts)
    nth = np.arange(len(osts)) - np.repeat(np.cumsum(counts) - counts - low, counts)
    return osts, costs.nth(nth, osts) * TIE_STEPS + ties[osts]


def _cheapest(costs: _Costs, low: Array, high: Array, spare: int, ties: Array) -> Array:
    """`low`, and as many objects more as `spare` where they cost least on the OSTs alone."""
    osts, ost_costs = _arcs(costs, low, high, ties)
    chosen = osts[np.argsort(ost_costs, kind="stable")[:spare]]
    counts: Array = low + np.bincount(chosen, minlength=len(low))
    return counts


def _flow(costs: _Costs, low: Array, high: Array, spare: int, ties: Array, solver: Solver) -> Array:
    """`low`, and as many objects more as `spare` where they cost least, by the network; at most `high`."""
    if spare == 0:
        return low
    # Nodes: 0 source, 1.. servers, then the sink. An OST's own node would have one arc, of room for all that comes:
    # its arcs lead to the sink at once.
    osts, ost_costs = _arcs(costs, low, high, ties)
    servers, first, arcs = costs.servers, costs.by_server(low), costs.by_server(high - low)
    of_server = np.repeat(np.arange(servers), arcs)
    nth = np.arange(len(of_server)) - np.repeat(np.cumsum(arcs) - arcs - first, arcs)
    oss_costs = costs.nth_of_server(nth, of_server) * TIE_STEPS
    sink = 1 + servers
    tails = np.concatenate([np.zeros(len(osts), np.int64), 1 + costs.oss[osts]])
    heads = np.concatenate([1 + of_server, np.full(len(osts), sink)])
    supplies = np.zeros(sink + 1, np.int64)
    supplies[0], supplies[sink] = spare, -spare
    every = np.concatenate([oss_costs, ost_costs])
    flow = min_cost_flow(tails, heads, np.ones(len(tails), np.int64), every, supplies, solver)
    counts: Array = low + np.bincount(osts, flow[len(osts) :], len(low)).astype(np.int64)
    return counts


def alternating(waves: Array) -> Array:
    """Members in an order in which every wave comes again at equal distances; as they stand where there is one."""
    order = np.argsort(waves, kind="stable")
    _, counts = np.unique(waves, return_counts=True)
    nth = np.arange(len(waves)) - np.repeat(np.cumsum(counts) - counts, counts)
    turn: Array = order[np.argsort((nth + 0.5) / np.repeat(counts, counts), kind="stable")]
    return turn


def deal(draft: Draft, group: Group, counts: Array) -> None:
    """Deal the multiset of OSTs to the members: no member gets an OST twice.

    Where few are to meet: round after round, each from server to server and those first that have most, so that few
    members share an OST with others, and the rest are not held up by them. Else, and where that would give an OST
    twice, or waves differ: one card each in turn. OSTs are sorted by server, so the cards of one member, evenly spaced,
    spread over the servers too; and members of different waves alternate, so that each wave gets its share of the cards
    of every OST.
    """
    members, stripes = group.weights.shape
    waves = draft.problem.waves[group.requests]
    in_turn = bool(np.ptp(waves))
    if draft.few_meet and not in_turn and not np.ptp(group.weights, axis=1).any():
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
    # rows that lie far apart.
    turns = np.arange(members) * stride(members) % members
    if in_turn:
        turns = np.argsort(alternating(waves))
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
