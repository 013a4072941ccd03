"""Files that are written at about the same time, a wave, are spread over all OSTs; the job's bytes per OST stay.

First, lists are dealt to members in an order in which waves alternate (`alternating`): the cards of one OST, and of one
server, follow one another, so that each wave gets its share of them, to within one. Then, after all that is done for
the job as a whole, objects of equal size are exchanged between waves (`even_out`). That is a rounding of a matrix: row
and column sums, the objects of a wave and of an OST, are given, and every cell shall be near its share.
"""

from __future__ import annotations

import numpy as np

from tarazu.allocate.draft import Draft, stride
from tarazu.allocate.problem import Array

MAX_CELLS = 4_000_000
"""Waves × OSTs; beyond, neighbouring waves are taken for one."""
EFFORT = 1_000_000
"""Objects looked at in the rounds of one pass, of which there are at most `ROUNDS`."""
ROUNDS = 40
HALVING_ROUNDS = 3
FEW_MOVES = 5e-3
"""Share of the objects; a round that moves fewer is the last between these halves."""
NEUTRAL = 0.25
"""An object whose leaving wins no more than this share of what a whole one too many costs leaves for another's good."""
FEW_NEUTRAL = 6_000
"""That many, and twice as many as gain by leaving, are looked at in one round."""
IDLE_ROUNDS = 10
"""Rounds that win less than `LEAST_GAIN` of the time, after which a pass ends."""
LEAST_GAIN = 2e-3
SERVER_SHARE = 0.1
"""What a server's deviation counts beside an OST's; in the pass for servers as much as an OST's."""
NEARLY_EQUAL = 1 / 16
"""Logarithm (to 2) of the ratio of sizes up to which objects may be exchanged where few are equal."""
FEW_EQUAL = 0.05
"""Share of the bytes in objects without their equal in another wave, from which that is done."""
ROOM = 5e-4
"""By so much the highest OST and server may rise then."""


def alternating(waves: Array) -> Array:
    """Members in an order in which every wave comes again at equal distances; as they stand where there is one."""
    order = np.argsort(waves, kind="stable")
    _, counts = np.unique(waves, return_counts=True)
    if len(counts) <= 1:
        return np.arange(len(waves))
    nth = np.arange(len(waves)) - np.repeat(np.cumsum(counts) - counts, counts)
    turn: Array = order[np.argsort((nth + 0.5) / np.repeat(counts, counts), kind="stable")]
    return turn


def even_out(draft: Draft) -> None:
    """Exchange objects of equal size between waves until each wave's bytes lie as the whole job's do."""
    problem = draft.problem
    if len(np.unique(problem.waves)) > 1 and problem.groups:
        before = [group.osts for group in problem.groups]
        was = _Objects(draft)
        for group in problem.groups:
            if not np.ptp(group.weights, axis=0).any():
                members = np.arange(len(group.osts))
                dealt = group.osts[np.argsort(members * stride(len(members)) % len(members))]
                group.osts = dealt[np.argsort(alternating(problem.waves[group.requests]))]
        objects = _Objects(draft)
        objects.even_out()
        if objects.time_s() <= was.time_s():
            objects.store()
        else:
            for group, osts in zip(problem.groups, before):
                group.osts = osts


class _Objects:
    """Every object by its OST and wave, and what each wave has on each OST."""

    def __init__(self, draft: Draft) -> None:
        problem, groups = draft.problem, draft.problem.groups
        self.draft, self.problem = draft, problem
        self.osts = len(problem.osts)
        self.rate = 1 / draft.levels.slope
        self.rate /= self.rate.mean()
        self.ost = np.concatenate([g.osts.ravel() for g in groups])
        self.weight = np.concatenate([g.weights.ravel() for g in groups]).astype(np.int64)
        self.width = np.concatenate([np.full(len(g.osts), g.osts.shape[1]) for g in groups])
        """(rows,) objects of each component."""
        self.first = np.cumsum(self.width) - self.width
        """(rows,) where they begin."""
        self.row = np.repeat(np.arange(len(self.width)), self.width)
        self.eligible = np.repeat([g.eligible for g in groups], [g.weights.size for g in groups])
        _, waves = np.unique(problem.waves, return_inverse=True)
        most = max(1, MAX_CELLS // self.osts)
        waves = waves // -(-(int(waves.max()) + 1) // most)
        self.real = np.concatenate([np.repeat(waves[g.requests], g.osts.shape[1]) for g in groups])
        """(objects,) wave of each."""
        self.real_waves = int(waves.max()) + 1
        self._look(self.real, self.real_waves)
        self.server_width = np.bincount(problem.oss, minlength=len(problem.oss_names))
        self.by_server = np.argsort(problem.oss, kind="stable")
        self.server_first = np.cumsum(self.server_width) - self.server_width
        placed = self.bytes.sum(axis=0)
        levels = draft.levels
        top = float(levels.at(placed).max()) * (1 + ROOM)
        self.limit = np.minimum(levels.bytes_below(top), levels.room)
        of_server = np.bincount(problem.oss, placed) / self.server_width
        self.server_limit = float(of_server.max()) * (1 + ROOM) * self.server_width
        self.random = np.random.default_rng(0)

    def even_out(self) -> None:
        """Objects of one size; of nearly one, where few are equal; then for servers."""
        kind, alone = self._kinds(self.weight)
        if self.weight[alone].sum() > FEW_EQUAL * self.weight.sum():
            # Negative, so that they are no size of others.
            near = -(np.log2(self.weight) / NEARLY_EQUAL).astype(np.int64) - 1
            kind, _ = self._kinds(np.where(alone, near, self.weight))
        self._halve(kind)
        self._pass(kind, for_servers=True)

    def _halve(self, kind: Array) -> None:
        """The first half of the waves against the second, then quarters, and so on; then waves in any pairs.

        So what lies near in time is even as well where waves overlap, and many waves take no more than a few rounds.
        """
        best, osts = self.time_s(), self.ost.copy()
        parts = 1
        while parts < self.real_waves and not self.draft.due:
            parts *= 2
            self._look(self.real * parts // self.real_waves, parts)
            for _ in range(HALVING_ROUNDS):
                if self._round(kind, np.arange(parts) ^ 1) < len(self.ost) * FEW_MOVES:
                    break
        self._look(self.real, self.real_waves)
        if self.time_s() > best:
            self.ost = osts
            self._look(self.real, self.real_waves)
        self._pass(kind)

    def _look(self, wave: Array, waves: int) -> None:
        """Look at the objects by these waves, or halves, quarters, ... of all waves."""
        self.wave, self.waves = wave, waves
        cells = np.bincount(wave * self.osts + self.ost, self.weight, waves * self.osts)
        self.bytes = cells.reshape(waves, self.osts)
        """(waves, OSTs)"""
        self.total = np.maximum(self.bytes.sum(axis=1), 1.0)
        """(waves,)"""
        share = self.bytes.sum(axis=0) / self.bytes.sum()
        self.off = self.bytes - self.total[:, None] * share
        """(waves, OSTs) bytes above each wave's share of what lies on the OST."""

    def _kinds(self, sizes: Array) -> tuple[Array, Array]:
        """(objects,) those of one kind may change places; (objects,) whether there is none in another wave."""
        _, kind = np.unique(sizes * len(self.problem.eligible) + self.eligible, return_inverse=True)
        lowest, highest = np.full(kind.max() + 1, self.waves), np.zeros(kind.max() + 1, np.int64)
        np.minimum.at(lowest, kind, self.wave)
        np.maximum.at(highest, kind, self.wave)
        return kind, (lowest == highest)[kind]

    def _pass(self, kind: Array, for_servers: bool = False) -> None:
        """Rounds of exchanges between waves in pairs; what they come to is never worse than it was."""
        best, osts, idle = self.time_s(for_servers), self.ost.copy(), 0
        for _ in range(min(ROUNDS, 2 + EFFORT // (len(self.ost) + self.bytes.size))):
            drawn = self.random.permutation(self.waves)
            half = self.waves // 2
            partner = np.arange(self.waves)
            partner[drawn[:half]], partner[drawn[half : 2 * half]] = drawn[half : 2 * half], drawn[:half]
            self._round(kind, partner, for_servers)
            time = self.time_s(for_servers)
            idle = 0 if time < best * (1 - LEAST_GAIN) else idle + 1
            if time <= best:
                best, osts = time, self.ost.copy()
            if idle == IDLE_ROUNDS or self.draft.due:
                break
        changed = np.flatnonzero(osts != self.ost)
        self._put(changed, osts[changed])

    def store(self) -> None:
        """Give the groups their OSTs back."""
        start = 0
        for group in self.problem.groups:
            group.osts = self.ost[start : start + group.osts.size].reshape(group.osts.shape)
            start += group.osts.size
        self.draft.placed = self.bytes.sum(axis=0)

    def time_s(self, for_servers: bool = False) -> float:
        """How long all waves take one after the other, as far as OSTs or servers go."""
        return float(
            (self._of_servers(self.bytes) if for_servers else self.bytes / self.rate).max(axis=1).sum()
        )

    def _of_servers(self, values: Array) -> Array:
        """(waves, servers) mean over the OSTs of each."""
        mean: Array = (
            np.add.reduceat(values[:, self.by_server], self.server_first, axis=1) / self.server_width
        )
        return mean

    def _round(self, kind: Array, partner: Array, for_servers: bool = False) -> int:
        """Pairs of waves exchange objects that each has too many of on one OST, and too few on the other; how many."""
        ours, gain = self._leaving(partner, 1.0 if for_servers else SERVER_SHARE)
        wave = self.wave[ours]
        # The best of one wave meets the best of the other, kind by kind.
        of = kind[ours] * self.waves + np.minimum(wave, partner[wave])
        side = wave > partner[wave]
        order = np.lexsort((-gain, side, of))
        ours, gain, of, side = ours[order], gain[order], of[order], side[order]
        code = of * len(self.ost) + _nth(of * 2 + side)
        _, left, right = np.intersect1d(code[~side], code[side], assume_unique=True, return_indices=True)
        gains = gain[~side][left] + gain[side][right]
        order = np.argsort(-gains, kind="stable")
        order = order[gains[order] > 1e-9 * gains.max(initial=0)]
        i, j = ours[~side][left[order]], ours[side][right[order]]
        may = ~self._has(self.row[i], self.ost[j]) & ~self._has(self.row[j], self.ost[i])
        i, j = i[may], j[may]
        keys = [(self.row[i], self.row[j])]
        if for_servers:
            may = self._stays_below(i, j) & self._stays_below(j, i)
            i, j = i[may], j[may]
            # Servers are few: many exchanges at once would overshoot.
            of = np.minimum(self.wave[i], self.wave[j]) * len(self.server_width)
            keys = [
                (self.row[i], self.row[j]),
                (of + self.problem.oss[self.ost[i]], of + self.problem.oss[self.ost[j]]),
            ]
        once = np.logical_and.reduce([_first_of_both(*pair) for pair in keys])
        i, j = i[once], j[once]
        may = self._fits(i, j)
        i, j = i[may], j[may]
        self._put(np.concatenate([i, j]), np.concatenate([self.ost[j], self.ost[i]]))
        return 2 * len(i)

    def _leaving(self, partner: Array, server_share: float) -> tuple[Array, Array]:
        """Objects whose wave has too many bytes on their OST beside its partner's, and what their leaving is worth.

        What is to become small is the sum over waves and OSTs of off² / (bytes of the wave × rate).
        """
        per_byte = 1 / self.total
        relative = self.off * per_byte[:, None]
        relative += server_share * self._of_servers(relative)[:, self.problem.oss]
        excess = ((relative - relative[partner]) / self.rate).ravel()
        each = (per_byte + per_byte[partner])[:, None] / self.rate
        each *= 1 + server_share / self.server_width[self.problem.oss]
        cell = self.wave * self.osts + self.ost
        halves = each.ravel()[cell] * self.weight / 2
        gain = excess[cell] - halves
        clear = np.flatnonzero(gain > halves * NEUTRAL)
        neutral = np.flatnonzero((gain <= halves * NEUTRAL) & (gain >= -halves))
        some = self.random.integers(0, len(neutral), min(len(neutral), 2 * len(clear) + FEW_NEUTRAL))
        # Those of one cell leave one after the other, in any order.
        objects = self.random.permutation(np.concatenate([clear, np.unique(neutral[some])]))
        objects = objects[np.argsort(cell[objects], kind="stable")]
        sizes = 2 * halves[objects]
        before = np.cumsum(sizes) - sizes
        before -= before[np.arange(len(objects)) - _nth(cell[objects])]
        gain = gain[objects] - before
        some = gain >= -halves[objects]
        return objects[some], gain[some]

    def _has(self, rows: Array, osts: Array) -> Array:
        """Whether these components have an object on these OSTs."""
        if not len(rows):
            return np.zeros(0, bool)
        width = self.width[rows]
        begin = np.cumsum(width) - width
        cells = np.arange(int(width.sum())) + np.repeat(self.first[rows] - begin, width)
        has: Array = np.logical_or.reduceat(self.ost[cells] == np.repeat(osts, width), begin)
        return has

    def _stays_below(self, i: Array, j: Array) -> Array:
        """Whether object i on the OST of j leaves that below the highest of its wave."""
        to = self.ost[j]
        then = (self.bytes[self.wave[i], to] + self.weight[i]) / self.rate[to]
        below: Array = then <= (self.bytes / self.rate).max(axis=1)[self.wave[i]]
        return below

    def _fits(self, i: Array, j: Array) -> Array:
        """Whether the job's bytes on OSTs and servers stay within the limits when these pairs are exchanged."""
        more = self.weight[i] - self.weight[j]
        if not more.any():
            return np.ones(len(i), bool)
        gaining = np.where(more > 0, self.ost[j], self.ost[i])
        fits = np.ones(len(i), bool)
        placed = self.bytes.sum(axis=0)
        of_server = np.bincount(self.problem.oss, placed)
        for to, now, limit in (
            (gaining, placed, self.limit),
            (self.problem.oss[gaining], of_server, self.server_limit),
        ):
            order = np.argsort(to, kind="stable")
            amount = np.cumsum(np.abs(more[order]))
            amount -= (amount - np.abs(more[order]))[np.arange(len(i)) - _nth(to[order])]
            fits[order] &= now[to[order]] + amount <= limit[to[order]]
        fits |= more == 0
        return fits

    def _put(self, objects: Array, osts: Array) -> None:
        for change, to in ((-self.weight[objects], self.ost[objects]), (self.weight[objects], osts)):
            np.add.at(self.bytes, (self.wave[objects], to), change)
            np.add.at(self.off, (self.wave[objects], to), change)
        self.ost[objects] = osts


def _nth(keys: Array) -> Array:
    """Place of each among equal neighbours."""
    place = np.arange(len(keys))
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else place
    nth: Array = place - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
    return nth


def _first_of_both(rows: Array, others: Array) -> Array:
    """Which pairs are the first that either of the two is in: each takes part in one exchange at a time."""
    every = np.column_stack([rows, others]).ravel()
    first = np.zeros(len(every), bool)
    first[np.unique(every, return_index=True)[1]] = True
    both: Array = first[0::2] & (first[1::2] | (rows == others))
    return both
