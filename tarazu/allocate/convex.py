"""tarazu's allocator: convex min-cost flow per group of like components, largest objects first, then
exchanges.

The network of the paper (source → OSS → OST → sink) with parallel arcs of capacity 1 whose costs rise: the
k-th object on an OST costs the OST's level (`levels.py`) in the middle of that object, the k-th on an OSS its
own, much smaller, term. So the cheapest flow is the balance itself instead of filling the cheapest OST first.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from tarazu.allocate import arrange, bounds, cost, improve, levels, packing, servers, terms
from tarazu.allocate.eligible import too_little_space
from tarazu.allocate.flow import Solver, min_cost_flow
from tarazu.allocate.problem import Array, Group, Problem, build, placements
from tarazu.config import Weights
from tarazu.model import Allocation, CreateRequest, SystemView

COST_SCALE = 1 << 20
"""Integer cost of one level; ties are broken below it."""
HIGHEST_LEVEL = 1e5
"""Levels above cost the same: OSTs of last resort; keeps costs within the solvers' range."""
TIE_STEPS = 64
RELAXED = 1e-9
"""Relative precision of the common level around which the flow looks."""
EXACT_FROM = 1e-3
"""Relative distance from the bound at which equal OSTs are given to the exact search."""
ORDERED_OBJECTS = 20_000
"""Up to so many objects of a group, each member's heavier objects are given to the emptier of its OSTs one by
one.
"""


class Convex:
    """Policy `tarazu`."""

    name = "tarazu"

    def __init__(
        self,
        seed: int = 0,
        weights: Weights | None = None,
        solver: Solver = "auto",
        exchanges: int = 2_000,
    ) -> None:
        """`exchanges`: steps that the improvement pass takes at most; 0 turns it off."""
        self.weights = weights or Weights()
        self._solver: Solver = solver
        self._exchanges = exchanges
        self._turn = seed

    def allocate(self, view: SystemView, requests: Sequence[CreateRequest]) -> Allocation:
        """Place `requests`. Raises InfeasibleRequest (never) or InsufficientResources (not now)."""
        start = perf_counter()
        problem = build(view, requests)
        level = levels.build(problem, self.weights)
        placed = np.zeros(len(problem.osts))
        turn = self._next_turn(len(problem.osts))
        for group in sorted(problem.groups, key=lambda g: -g.unit):
            counts = self._counts(problem, level, group, placed, turn)
            _deal(problem, level, group, counts, placed, turn)
            placed += np.bincount(group.osts.ravel(), group.weights.ravel(), len(placed))
        bound = bounds.utilization_of(problem)
        target = _target(problem, level, bound)
        placed = improve.exchange(problem, level, placed, self._exchanges, target)
        if self._exchanges and level.equal:
            placed, bound = _exact(problem, level, placed, bound, turn)
        placed = servers.spread(problem, level, placed, self._exchanges)
        arrange.arrange(problem, turn)
        files = placements(problem, _emptiest_first(problem, placed, turn))
        reached = cost.ost_cost({i: int(b) for i, b in enumerate(placed.tolist())})
        return Allocation(files, self.name, reached, bound, perf_counter() - start)

    def _next_turn(self, osts: int) -> int:
        """Where ties begin; a stride coprime with the number of OSTs visits them all."""
        stride = max(1, round(osts * 0.618))
        while np.gcd(stride, osts) != 1:
            stride += 1
        self._turn += 1
        return self._turn * stride % osts

    def _counts(
        self, problem: Problem, level: levels.Levels, group: Group, placed: Array, turn: int
    ) -> Array:
        """Objects of `group` per OST: the cheapest flow."""
        members, stripes = group.weights.shape
        need = members * stripes
        unit = group.unit
        largest = float(group.weights.max())
        fits = np.floor((level.room - placed) / largest + 1e-9).clip(0, members).astype(np.int64)
        fits[~problem.eligible[group.eligible]] = 0
        if fits.sum() < need or np.count_nonzero(fits) < stripes:
            short = [
                problem.osts[i].index for i in np.flatnonzero((fits == 0) & problem.eligible[group.eligible])
            ]
            where = f"file system {problem.view.fs_name}"
            raise too_little_space(where, need, int(largest), int(fits.sum()), short)
        around = _relaxed(level, placed, unit, need, fits)
        margin = 2
        while True:
            low = np.maximum(0, around - margin)
            high = np.minimum(fits, around + margin)
            counts, inside = self._window(problem, level, placed, unit, need, low, high, turn)
            free = (low == 0) | (counts > low)
            open_above = (high == fits) | (counts < high)
            if inside and free.all() and open_above.all():
                return counts
            margin *= 4

    def _window(
        self,
        problem: Problem,
        level: levels.Levels,
        placed: Array,
        unit: float,
        need: int,
        low: Array,
        high: Array,
        turn: int,
    ) -> tuple[Array, bool]:
        """The flow with each OST's count between `low` and `high`; False when these bounds cannot hold it."""
        spare = int(need - low.sum())
        if spare < 0 or spare > int((high - low).sum()):
            return low, False
        if spare == 0:
            return low, bool((low == 0).all())
        osts = len(problem.osts)
        servers = len(problem.oss_names)
        ost_of_arc = np.repeat(np.arange(osts), high - low)
        if len(ost_of_arc) == 0:
            return low, False
        nth = np.arange(len(ost_of_arc)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
        kth = low[ost_of_arc] + nth
        middle = placed[ost_of_arc] + (kth + 0.5) * unit
        first = level.base[ost_of_arc] + level.slope[ost_of_arc] * middle
        second = level.base2[ost_of_arc] + level.slope2[ost_of_arc] * middle
        rank = (arrange.ring(problem.oss) - turn) % osts
        tie = rank[ost_of_arc] * TIE_STEPS // osts
        level_of_arc = np.maximum(first, second).clip(None, HIGHEST_LEVEL)
        ost_costs = np.rint(level_of_arc * COST_SCALE).astype(np.int64) * TIE_STEPS + tie
        oss_of_arc, oss_costs = self._oss_arcs(problem, level, placed, unit, low, high)
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
        flow = min_cost_flow(tails, heads, capacities, costs, supplies, self._solver)
        return low + flow[-osts:], True

    def _oss_arcs(
        self, problem: Problem, level: levels.Levels, placed: Array, unit: float, low: Array, high: Array
    ) -> tuple[Array, Array]:
        """Arcs source → OSS: the n-th object on a server costs its bytes per OST, in mean bytes per OST."""
        servers = len(problem.oss_names)
        size = np.bincount(problem.oss, minlength=servers)
        bytes_now = np.bincount(problem.oss, placed + low * unit, servers)
        arcs = np.bincount(problem.oss, high - low, servers).astype(np.int64)
        oss_of_arc = np.repeat(np.arange(servers), arcs)
        nth = np.arange(len(oss_of_arc)) - np.repeat(np.cumsum(arcs) - arcs, arcs)
        mean = max(1.0, problem.total_bytes / len(problem.osts))
        filled = (bytes_now[oss_of_arc] + (nth + 0.5) * unit) / (size[oss_of_arc] * mean)
        costs = np.rint(self.weights.oss_balance * filled * COST_SCALE).astype(np.int64) * TIE_STEPS
        return oss_of_arc, costs


def _emptiest_first(problem: Problem, placed: Array, turn: int) -> Array:
    """Positions of the OSTs by final fill, degraded ones last."""
    osts = problem.osts
    used = np.array([o.used_bytes + o.promised_bytes for o in osts], float) + placed
    fill = used / np.array([max(1, o.total_bytes) for o in osts], float)
    turned = (arrange.ring(problem.oss) - turn) % len(osts)
    return np.lexsort((turned, fill, np.array([o.degraded for o in osts])))


def _target(problem: Problem, level: levels.Levels, bound: float) -> float:
    """Just above a highest level that no placement undercuts: the last thousandth is not worth a search."""
    rate = 1 / level.slope
    even = terms.water_level(level.base * rate, rate, float(problem.total_bytes))
    if level.equal:
        per_level = problem.total_bytes / len(problem.osts)
        even = max(even, float(level.at(np.full(len(rate), bound * per_level)).max()))
    return even + EXACT_FROM


def _exact(
    problem: Problem, level: levels.Levels, placed: Array, bound: float, turn: int
) -> tuple[Array, float]:
    """The exact optimum where exchanges may have missed it: equal OSTs, few sizes. Bytes per OST, and bound."""
    osts = len(placed)
    per_level = problem.total_bytes / osts
    highest = int(placed.max())
    near = highest <= bound * per_level * (1 + EXACT_FROM)
    if near or highest > level.room.min() or not packing.equal_rows([g.weights for g in problem.groups]):
        return placed, bound
    found = packing.pack(problem, bound * per_level, highest)
    before = [group.osts for group in problem.groups]
    if found.counts is not None and packing.apply(problem, found.counts, turn):
        new = np.zeros(osts)
        for group in problem.groups:
            new += np.bincount(group.osts.ravel(), group.weights.ravel(), osts)
        if level.at(new).max() < level.at(placed).max():
            placed = new
        else:
            for group, chosen in zip(problem.groups, before):
                group.osts = chosen
    return placed, max(bound, found.bound / per_level)


def _relaxed(level: levels.Levels, placed: Array, unit: float, need: int, fits: Array) -> Array:
    """Counts without the OSS term: as many objects on each OST as lie below one common level."""
    low = 0.0
    high = max(1.0, float(level.at(placed).max()))
    while np.minimum(level.units_below(high, placed, unit), fits).sum() < need:
        low, high = high, high * 2
    while high - low > RELAXED * high:
        middle = (low + high) / 2
        below = int(np.minimum(level.units_below(middle, placed, unit), fits).sum())
        if below >= need:
            high = middle
        else:
            low = middle
        if below == need:
            break
    counts: Array = np.minimum(level.units_below(high, placed, unit), fits)
    return counts


def _deal(
    problem: Problem, level: levels.Levels, group: Group, counts: Array, placed: Array, turn: int
) -> None:
    """Deal the multiset of OSTs to the members, one card each in turn: no member gets an OST twice.

    OSTs are sorted by server, so the cards of one member, evenly spaced, spread over the servers too.
    """
    members, stripes = group.weights.shape
    order = np.roll(np.argsort(problem.oss, kind="stable"), -turn)
    cards = np.repeat(order, counts[order])
    rows = cards.reshape(stripes, members).T
    # Each member starts elsewhere in its row, so that first stripes are spread as well.
    start = (np.arange(members) + turn) % stripes
    rows = np.take_along_axis(rows, (np.arange(stripes) + start[:, None]) % stripes, axis=1)
    if stripes > 1 and members * stripes <= ORDERED_OBJECTS and np.ptp(group.weights, axis=1).any():
        placed = placed.copy()
        for row, weights in zip(rows, group.weights):
            emptiest = np.argsort(level.at(placed[row], row), kind="stable")
            heaviest = np.argsort(-weights, kind="stable")
            row[heaviest] = row[emptiest]
            placed[row] += weights
    group.osts = rows
