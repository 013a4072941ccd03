"""Which objects each OST holds, for the steps that move single objects: moves, swaps, and how to choose among them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tarazu.allocate.draft import Draft
from tarazu.allocate.problem import Array

TRIES = 64
"""Exchanges, best first, that are checked for distinct OSTs."""
MOST_SIZES = 88
"""Object sizes of an OST that are looked at; of more so many, evenly chosen: their differences are fine enough."""


class Holdings:
    """Where every object is, indexed both ways; numbers are Python's, single steps are faster so."""

    def __init__(self, draft: Draft) -> None:
        groups = draft.problem.groups
        self.draft = draft
        self.eligible = draft.problem.eligible
        self.levels = draft.levels
        self.ost = np.concatenate([g.osts.ravel() for g in groups])
        self.weight = np.concatenate([g.weights.ravel() for g in groups])
        sizes = [g.weights.shape for g in groups]
        firsts = np.cumsum([0] + [m for m, _ in sizes])
        self.component = np.concatenate(
            [np.repeat(np.arange(m) + f, c) for (m, c), f in zip(sizes, firsts.tolist())]
        )
        self._eligible_row = np.concatenate([np.full(m * c, g.eligible) for g, (m, c) in zip(groups, sizes)])
        self.x = draft.placed.astype(float)
        self.level = self.levels.at(self.x)
        by_ost = np.argsort(self.ost, kind="stable")
        self._by_ost = np.split(by_ost, np.cumsum(np.bincount(self.ost, minlength=len(self.x)))[:-1])
        self._objects: dict[int, dict[int, list[int]]] = {}
        self._component_end = np.cumsum(np.bincount(self.component))
        self._osts_of: dict[int, set[int]] = {}
        self._sizes: dict[int, Array] = {}
        self._sets: dict[int, tuple[list[tuple[int, ...]], Array]] = {}

    def store(self) -> None:
        """Write the OSTs back into the draft."""
        start = 0
        for group in self.draft.problem.groups:
            end = start + group.osts.size
            group.osts = self.ost[start:end].reshape(group.osts.shape)
            start = end
        self.draft.placed = self.x

    def sizes(self, ost: int) -> Array:
        """Distinct object sizes on an OST, at most `MOST_SIZES`, ascending, behind a 0 for "nothing"."""
        ascending = self._sizes.get(ost)
        if ascending is None:
            every = np.array([0, *sorted(self.objects(ost))], np.int64)
            if len(every) > MOST_SIZES:
                every = every[np.linspace(0, len(every) - 1, MOST_SIZES).astype(int)]
            ascending = self._sizes[ost] = every
        return ascending

    def sets(self, ost: int) -> tuple[list[tuple[int, ...]], Array]:
        """Sizes of no, one or two objects of an OST, and their sums."""
        pair = self._sets.get(ost)
        if pair is None:
            sets = _sets(self.objects(ost))
            pair = self._sets[ost] = (sets, np.array([sum(s) for s in sets], np.int64))
        return pair

    def objects(self, ost: int) -> dict[int, list[int]]:
        """Objects on an OST by weight."""
        by_weight = self._objects.get(ost)
        if by_weight is None:
            by_weight = self._objects[ost] = {}
            for i in self._by_ost[ost].tolist():
                by_weight.setdefault(int(self.weight[i]), []).append(i)
        return by_weight

    def osts_of(self, component: int) -> set[int]:
        osts = self._osts_of.get(component)
        if osts is None:
            start = int(self._component_end[component - 1]) if component else 0
            osts = set(self.ost[start : int(self._component_end[component])].tolist())
            self._osts_of[component] = osts
        return osts

    def may_move(self, i: int, to: int) -> bool:
        allowed = self.eligible[self._eligible_row[i], to]
        return bool(allowed) and to not in self.osts_of(int(self.component[i]))

    def shift(self, i: int, to: int) -> None:
        """Object `i` goes to OST `to`; the caller knows that it may."""
        source = int(self.ost[i])
        weight = int(self.weight[i])
        self.objects(to).setdefault(weight, []).append(i)
        same = self.objects(source)[weight]
        same.remove(i)
        if not same:
            del self.objects(source)[weight]
        self.ost[i] = to
        self.x[source] -= weight
        self.x[to] += weight
        for ost in (source, to):
            self.level[ost] = self.levels.at(self.x[ost], ost)
            self._sizes.pop(ost, None)
            self._sets.pop(ost, None)

    def swap(self, i: int, j: int) -> None:
        a, b = int(self.ost[i]), int(self.ost[j])
        ci, cj = int(self.component[i]), int(self.component[j])
        if ci != cj:
            self.osts_of(ci).symmetric_difference_update((a, b))
            self.osts_of(cj).symmetric_difference_update((a, b))
        self.shift(i, b)
        self.shift(j, a)

    def alike(self, ours: list[int], theirs: list[int]) -> Array:
        """(ours, theirs) whether two OSTs may exchange all that they hold."""
        a, b, v = np.array(ours)[:, None], np.array(theirs), self.levels
        alike: Array = (self.x[a] <= v.room[b]) & (self.x[b] <= v.room[a])
        for of in (v.base, v.slope, v.slope2, *self.eligible):
            alike &= of[a] == of[b]
        return alike

    def swap_all(self, a: int, b: int) -> None:
        """Exchange everything on two OSTs that are `alike`."""
        for source, to in ((a, b), (b, a)):
            for i in (i for same in self.objects(source).values() for i in same):
                self.ost[i] = to
                self._osts_of.pop(int(self.component[i]), None)
        self._objects[a], self._objects[b] = self._objects[b], self._objects[a]
        for ost in (a, b):
            self._sizes.pop(ost, None)
            self._sets.pop(ost, None)
        for values in (self.x, self.level):
            values[a], values[b] = values[b], values[a]

    def move(self, i: int, to: int) -> None:
        self.osts_of(int(self.component[i])).symmetric_difference_update((int(self.ost[i]), to))
        self.shift(i, to)

    def exchange(self, high: int, low: int, weight: int, other: int) -> bool:
        """An object of `weight` bytes goes from `high` to `low`, one of `other` bytes the other way if not 0.

        False where no two objects may: the OSTs of a component are distinct.
        """
        ours, theirs = self.objects(high)[weight], self.objects(low).get(other)
        i = next((i for i in ours if self.may_move(i, low)), None)
        if theirs is None:
            if i is not None:
                self.move(i, low)
            return i is not None
        j = next((j for j in theirs if self.may_move(j, high)), None)
        if i is None or j is None:
            # Two objects of one component change places.
            ours_of = {int(self.component[i]): i for i in ours}
            pairs = ((ours_of.get(int(self.component[j])), j) for j in theirs)
            i, j = next(((i, j) for i, j in pairs if i is not None), (None, 0))
        if i is not None:
            self.swap(i, j)
        return i is not None


def best(worst: Array, top: float) -> Iterator[tuple[int, int]]:
    """Cells below `top`, the lowest first, at most `TRIES`."""
    flat = worst.ravel()
    below = np.flatnonzero(flat < top)
    if len(below) > TRIES:
        below = np.sort(below[np.argpartition(flat[below], TRIES)[:TRIES]])
    for cell in below[np.argsort(flat[below], kind="stable")].tolist():
        yield divmod(cell, worst.shape[1])


def owners(osts: list[int], parts: list[Array]) -> Array:
    return np.repeat(np.array(osts), [len(p) for p in parts])


def _sets(objects: dict[int, list[int]]) -> list[tuple[int, ...]]:
    """Sizes of no, one or two objects."""
    sizes = sorted(objects)
    twos = [(a, b) for n, a in enumerate(sizes) for b in sizes[n:] if a != b or len(objects[a]) > 1]
    return [(), *((a,) for a in sizes), *twos]
