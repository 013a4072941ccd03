"""Moves of one application at a time, kept where the model says that they help."""

from __future__ import annotations

import numpy as np

from tarazu.parts.forwarding.joint.congestion import SCALE, TINY, CongestedSystem, Modelled, Objective
from tarazu.parts.forwarding.tables import Array

LEAST_GAIN = 1e-5
"""Of the objective: below it a move does not help."""
LEAST_PROMISE = 0.05
"""A move is tried that promises to save at least this share of what the application costs: smaller ones follow what the
model does not know, and disturb a placement that is even."""
TRIALS = 40
"""Moves are tried about so many times in one round through all applications: one by one, or several at once where
there are more applications, and by halves where several do not help together."""
EFFORT = 1700.0
"""Looks at one application, and trials: the search ends where it is when it has made so many. With fewer than some 100
applications it ends by itself."""
SLOTS = 250
"""A trial is as much work as a look, and as one more for each so many pairs of application and resource."""
CELLS = 4000
"""A look is as much work again for each so many pairs of resource and number."""
SHORTLIST = 48
"""Resources that are looked at closely for one application."""
CHOICES = 12
"""Numbers of resources that are looked at for one application; where there are more some are left out."""
ONE = np.ones((1, 1), bool)


class Search:
    """A schedule that is improved move by move."""

    def __init__(self, of: CongestedSystem, goal: Objective, found: Modelled, placed: list[Array]) -> None:
        self.of, self.goal, self.found, self.placed = of, goal, found, placed
        self.value = goal.of(found)
        self.choices = [choices(of, i) for i in range(len(placed))]
        self.alone_s = [of.io_s[i, c - 1][:, None] for i, c in enumerate(self.choices)]
        self.roots = [np.sqrt(c)[:, None] for c in self.choices]
        self.every = np.arange(of.count)
        self.effort = 0.0
        self._look()

    def round(self) -> int:
        """Try to move each application, those that cost most first; moves that were kept."""
        order = np.argsort(-(self.cost * self.found.io_s), kind="stable").tolist()
        together = max(1, len(order) // TRIALS)
        kept = 0
        for at in range(0, len(order), together):
            if self.effort > EFFORT:
                return 0
            several = order[at : at + together]
            kept += self._try({i: places for i in several if (places := self._better(i)) is not None})
        return kept

    def _look(self) -> None:
        """What follows from the schedule as it is: presence on each resource, and prices."""
        of, schedule = self.of, self.found
        per_slowdown, per_idle = self.goal.weights(schedule)
        best = np.where(of.best_s > TINY, of.best_s, np.inf)
        cycle = of.compute_s + schedule.io_s
        cycle = np.where(cycle > 0, cycle, np.inf)
        self.per_second = per_slowdown / len(best) / best
        self.per_share = per_idle * of.nodes
        self.cost = self.per_second + self.per_share * (of.compute_s / cycle) / cycle
        """(K,) what one more second of I/O a phase costs."""
        self.slot_price = (self.cost * schedule.alone_s)[schedule.application] * schedule.weights
        self.prices = np.bincount(schedule.resource, self.slot_price, of.count)
        self._forget()

    def _forget(self) -> None:
        """Moves that were looked at."""
        schedule = self.found
        self.present, self.varies, self.price = (
            schedule.present.copy(),
            schedule.varies.copy(),
            self.prices.copy(),
        )

    def _try(self, moves: dict[int, Array]) -> int:
        """Keep these moves if the model says that they help together; else halves of them."""
        if not moves:
            return 0
        placed = list(self.placed)
        for i, places in moves.items():
            placed[i] = places
        schedule = Modelled(self.of, placed, like=self.found)
        self.effort += 1 + len(schedule.resource) / SLOTS
        value = self.goal.of(schedule)
        if value < self.value - LEAST_GAIN:
            self.placed, self.found, self.value = placed, schedule, value
            self._look()
            return len(moves)
        self._forget()
        if len(moves) == 1:
            return 0
        each = list(moves.items())
        half = len(each) // 2
        return self._try(dict(each[:half])) + self._try(dict(each[half:]))

    def _better(self, i: int) -> Array | None:
        """Number and resources for application i that cost less than what it has, while all others stay as they are."""
        of, schedule = self.of, self.found
        begin = schedule.starts[i]
        slots = slice(begin, begin + schedule.counts[i])
        own, share = schedule.resource[slots], schedule.share[slots]
        present, varies, price = self.present, self.varies, self.price
        present[own] -= share
        varies[own] -= share * (1 - share)
        price[own] -= self.slot_price[slots]
        counts = self.choices[i]
        alone = self.alone_s[i]
        near = self._near(i, alone, int(counts[-1]))
        self.effort += 1 + len(near) * len(counts) / CELLS
        slow = 1 + np.maximum(present[near], 0)
        takes = alone * slow
        at_work = takes / np.maximum(of.compute_s[i] + takes, TINY)
        others = price[near] * at_work
        key = others + self.cost[i] * takes / self.roots[i]
        order = np.argsort(key, axis=1, kind="stable")[:, : counts[-1]]
        inside = np.arange(counts[-1]) < counts[:, None]
        total = (np.take_along_axis(others, order, 1) * inside).sum(1)
        total += self._own(i, alone[:, 0], slow[order], varies[near][order], inside, counts)
        chosen = int(total.argmin())
        of_others, mine = self._as_it_is(i, own, slots)
        if total[chosen] >= (of_others + mine) * (1 - LEAST_PROMISE):
            present[own] += share
            varies[own] += share * (1 - share)
            price[own] += self.slot_price[slots]
            return None
        # The others of this trial see it where it would be.
        columns = order[chosen, : counts[chosen]]
        places: Array = near[columns]
        new = at_work[chosen, columns]
        present[places] += new
        varies[places] += new * (1 - new)
        price[places] += self.cost[i] * alone[chosen, 0] / counts[chosen]
        return places

    def _as_it_is(self, i: int, own: Array, slots: slice) -> tuple[float, float]:
        """What it costs the others, and itself, where it is: by the same estimate as what it is compared with."""
        alone = float(self.found.alone_s[i])
        slow = 1 + np.maximum(self.present[own], 0)
        takes = alone * slow
        at_work = takes / np.maximum(self.of.compute_s[i] + takes, TINY)
        mine = self._own(i, np.array([alone]), slow[None], self.varies[own][None], ONE, np.array([len(own)]))
        return float((self.price[own] * at_work).sum()), float(mine[0])

    def _near(self, i: int, alone: Array, largest: int) -> Array:
        """The resources that are looked at closely: all where they are few."""
        most = max(SHORTLIST, 2 * largest)
        if self.of.count <= most:
            return self.every
        rough = alone[len(alone) // 2, 0] * (1 + np.maximum(self.present, 0))
        key = self.price * (rough / np.maximum(self.of.compute_s[i] + rough, TINY)) + self.cost[i] * rough
        near: Array = np.argpartition(key, most)[:most]
        return near

    def _own(self, i: int, alone: Array, slow: Array, varies: Array, inside: Array, counts: Array) -> Array:
        """(C,) what application i's own I/O costs with each of C numbers of resources."""
        slow = np.where(inside, slow, 1)
        longest = slow.max(1)
        scale = SCALE * np.sqrt(np.maximum(varies * inside, 0)).sum(1) / counts + TINY
        parts = np.exp((slow - longest[:, None]) / scale[:, None]) * inside
        takes = alone * (longest + scale * np.log(parts.sum(1)))
        cost: Array = self.per_second[i] * takes
        cost += self.per_share[i] * takes / np.maximum(self.of.compute_s[i] + takes, TINY)
        return cost


def choices(of: CongestedSystem, i: int) -> Array:
    """Numbers of resources that are worth a look for application i, ascending."""
    most = int(of.values.n_perf[i])
    least = int(of.values.n_sys[i])
    every = np.arange(1, most + 1)
    if len(every) > CHOICES:
        every = np.unique(np.rint(np.append(np.geomspace(1, most, CHOICES - 1), least)).astype(int))
    return every
