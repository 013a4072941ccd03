"""First step: convex min-cost flow per group of like components, largest objects first.

The k-th object on an OST costs the OST's level (`marginal_cost.py`) in the middle of that object, the k-th on an OSS
its own, much smaller, term. So the cheapest flow (`network.py`) is the balance itself instead of filling the cheapest
OST first, and it is the placement of the group. Arcs well above the common level, which no flow would use, are left
out.
"""

from __future__ import annotations

import numpy as np

from tarazu.allocate.draft import Draft, ring, stride
from tarazu.allocate.eligible import too_little_space
from tarazu.allocate.network import Network, cheapest
from tarazu.allocate.problem import Array, Group
from tarazu.errors import InsufficientResources

OSS_BALANCE = 0.1
"""Levels per mean bytes per OST on one OSS: spreads over servers what is equal on OSTs, and no more."""
COST_SCALE = 1 << 20
"""Integer cost of one level; ties are broken below it."""
HIGHEST_LEVEL = 1e5
"""Levels above cost the same: OSTs of last resort; keeps costs within the solvers' range."""
TIE_STEPS = 64
RELAXED = 1e-9
"""Relative precision of the common level, at least."""
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
    while True:
        most = np.minimum(costs.below(level + margin) + 1, fits)
        counts = cheapest(costs.network(most, ties), need)
        if ((counts < most) | (most == fits)).all():
            return counts
        margin *= 4  # an OST that has all that it was offered may be worth more


class _Costs:
    """What one object more of a group costs on each OST, and on each server; in levels, and as whole numbers."""

    def __init__(self, draft: Draft, unit: float, fits: Array) -> None:
        problem = draft.problem
        self._fits, self._oss = fits, problem.oss
        self._servers = len(problem.oss_names)
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
        per_byte = OSS_BALANCE / (np.bincount(self._oss, minlength=self._servers) * mean)
        bytes_now = np.bincount(self._oss, draft.placed + draft.lately, self._servers)
        self._step = unit * per_byte
        """(servers,) levels by which an object costs more than the one before."""
        self._start = bytes_now * per_byte + self._step / 2

    def below(self, level: float) -> Array:
        """(n,) as many objects on each OST as have their middle at `level` or below."""
        nth = np.minimum(level * self._rise - self._from, level * self._rise2 - self._from2)
        counts: Array = np.minimum(np.maximum(np.floor(nth), 0.0), self._fits).astype(np.int64)
        return counts

    def around(self, need: int) -> tuple[float, float]:
        """The level up to which OSTs take `need` objects, and by how much their servers' parts differ there."""
        low, high = 0.0, 1.0
        while self.below(high).sum() < need:
            low, high = high, high * 2
        precision = float(self._step.min())
        while high - low > max(precision, RELAXED * high):
            middle = (low + high) / 2
            low, high = (low, middle) if self.below(middle).sum() >= need else (middle, high)
        part = self._start + self._step * np.bincount(self._oss, self.below(high), self._servers)
        return high, float(np.ptp(part) + self._step.max())

    def network(self, most: Array, ties: Array) -> Network:
        """With so many arcs for each OST."""
        ost, nth = _each(most)
        server, nth_of_server = _each(np.bincount(self._oss, most, self._servers).astype(np.int64))
        level = self._levels.at(self._first[ost] + nth * self._unit, ost)
        of_ost = np.rint(np.minimum(level, HIGHEST_LEVEL) * COST_SCALE).astype(np.int64)
        level = self._start[server] + nth_of_server * self._step[server]
        of_server = np.rint(level * COST_SCALE).astype(np.int64)
        return Network(self._oss, most, of_ost * TIE_STEPS + ties[ost], of_server * TIE_STEPS)


def _each(counts: Array) -> tuple[Array, Array]:
    """For each of so many of each kind: (its kind, which of them it is)."""
    kind = np.repeat(np.arange(len(counts)), counts)
    return kind, np.arange(len(kind)) - np.repeat(np.cumsum(counts) - counts, counts)


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
