"""The exchange pass: moves and swaps of single objects, or two at a time, that lower the highest OSTs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tarazu.allocate.levels import Levels
from tarazu.allocate.problem import Array, Problem

PARTNERS = 24
"""OSTs that are tried as the other side of an exchange, lowest level first."""
MAX_STUCK = 12
"""OSTs from the highest on that may fail to find an exchange before the pass ends."""
LEAST_GAIN = 2e-4
"""Levels by which an exchange lowers the highest OST at least: less is not worth a step."""
MAX_SET_SIZES = 12
"""Object sizes on an OST up to which exchanges of two objects at a time are tried."""
SET_EFFORT = 2
"""What one such try counts, in steps."""
SET_PARTNERS = 8
SET_STUCK = 6
"""Partners and highest OSTs for which such exchanges are tried."""
MAX_CELLS = 8_000
"""Pairs of object sizes, of an OST and its partners, that are looked at in one step."""
TRIES = 64
"""Exchanges, best first, that are checked for distinct OSTs."""
FEW_PAIRS = 100
"""Pairs of object sizes on two OSTs up to which all are looked at."""
OPTIONS = 16
"""Exchanges between two OSTs, best first, that are checked for distinct OSTs."""


class State:
    """Where every object is, indexed both ways; numbers are Python's, single steps are faster so."""

    def __init__(self, problem: Problem, level: Levels, placed: Array) -> None:
        groups = problem.groups
        self.problem = problem
        self.levels = level
        self.ost = np.concatenate([g.osts.ravel() for g in groups])
        self.weight = np.concatenate([g.weights.ravel() for g in groups])
        sizes = [g.weights.shape for g in groups]
        firsts = np.cumsum([0] + [m for m, _ in sizes])
        self.component = np.concatenate(
            [np.repeat(np.arange(m) + f, c) for (m, c), f in zip(sizes, firsts.tolist())]
        )
        self.eligible_row = np.concatenate([np.full(m * c, g.eligible) for g, (m, c) in zip(groups, sizes)])
        self.x = placed.astype(float)
        self.level = level.at(self.x)
        by_ost = np.argsort(self.ost, kind="stable")
        self._by_ost = np.split(by_ost, np.cumsum(np.bincount(self.ost, minlength=len(placed)))[:-1])
        self._objects: dict[int, dict[int, list[int]]] = {}
        by_component = np.cumsum(np.bincount(self.component))
        self._component_end = by_component
        self._osts_of: dict[int, set[int]] = {}
        self._sizes: dict[int, Array] = {}
        self._sets: dict[int, tuple[list[tuple[int, ...]], Array]] = {}

    def sizes(self, ost: int) -> Array:
        """Distinct object sizes on an OST, ascending, behind a 0 for "nothing"."""
        found = self._sizes.get(ost)
        if found is None:
            found = self._sizes[ost] = np.array([0, *sorted(self.objects(ost))], np.int64)
        return found

    def sets(self, ost: int) -> tuple[list[tuple[int, ...]], Array]:
        """Sizes of no, one or two objects of an OST, and their sums."""
        found = self._sets.get(ost)
        if found is None:
            sets = _sets(self.objects(ost))
            found = self._sets[ost] = (sets, np.array([sum(s) for s in sets], np.int64))
        return found

    def objects(self, ost: int) -> dict[int, list[int]]:
        """Objects on an OST by weight."""
        found = self._objects.get(ost)
        if found is None:
            found = self._objects[ost] = {}
            for i in self._by_ost[ost].tolist():
                found.setdefault(int(self.weight[i]), []).append(i)
        return found

    def osts_of(self, component: int) -> set[int]:
        found = self._osts_of.get(component)
        if found is None:
            start = int(self._component_end[component - 1]) if component else 0
            found = set(self.ost[start : int(self._component_end[component])].tolist())
            self._osts_of[component] = found
        return found

    def may_move(self, i: int, to: int) -> bool:
        return bool(self.problem.eligible[self.eligible_row[i], to]) and to not in self.osts_of(
            int(self.component[i])
        )

    def level_at(self, ost: int, x: float) -> float:
        v = self.levels
        return float(max(v.base[ost] + v.slope[ost] * x, v.base2[ost] + v.slope2[ost] * x))

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
            self.level[ost] = self.level_at(ost, float(self.x[ost]))
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

    def alike(self, a: int, b: int) -> bool:
        """True when two OSTs may exchange all that they hold."""
        v = self.levels
        same_level = v.base[a] == v.base[b] and v.slope[a] == v.slope[b] and v.slope2[a] == v.slope2[b]
        fits = self.x[a] <= v.room[b] and self.x[b] <= v.room[a]
        return bool(
            same_level and fits and (self.problem.eligible[:, a] == self.problem.eligible[:, b]).all()
        )

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

    def carry_out(self, pair: tuple[int, int | None], to: int) -> None:
        """A move of the first object to OST `to`, or its swap with the second."""
        i, j = pair
        if j is None:
            self.move(i, to)
        else:
            self.swap(i, j)

    def move(self, i: int, to: int) -> None:
        self.osts_of(int(self.component[i])).symmetric_difference_update((int(self.ost[i]), to))
        self.shift(i, to)


def exchange(problem: Problem, level: Levels, placed: Array, limit: int, target: float) -> Array:
    """Lower the highest OSTs, `group.osts` in place; returns the new bytes per OST.

    limit: steps, each of which tries one OST with all its partners; target: level at which nothing more can be won.
    """
    return with_state(problem, level, placed, limit, lambda state, steps: _lower_osts(state, steps, target))


def with_state(
    problem: Problem, level: Levels, placed: Array, limit: int, improve: Callable[[State, int], None]
) -> Array:
    if not problem.groups or limit <= 0:
        return placed
    state = State(problem, level, placed)
    improve(state, limit)
    start = 0
    for group in problem.groups:
        end = start + group.osts.size
        group.osts = state.ost[start:end].reshape(group.osts.shape)
        start = end
    return state.x


def _lower_osts(state: State, limit: int, target: float) -> None:
    """Take from the highest OST as long as any exchange with a lower one leaves both below its level."""
    stuck: set[int] = set()
    effort = 0
    while effort < limit and len(stuck) <= MAX_STUCK:
        highest = _extremes(-state.level, MAX_STUCK + 1)
        high = next((a for a in highest if a not in stuck), None)
        if high is None or state.level[high] <= target:
            return
        top = float(state.level[high]) - LEAST_GAIN
        lower = [low for low in _extremes(state.level, PARTNERS) if low != high and state.level[low] < top]
        effort += 1
        changed = bool(lower) and _exchange(state, high, lower, top)
        # Only now the costlier exchanges of two objects at a time.
        if not changed and len(stuck) < SET_STUCK:
            lower = lower[:SET_PARTNERS]
            effort += SET_EFFORT
            changed = _exchange_sets(state, high, lower, top)
        if changed:
            stuck.clear()
        else:
            stuck.add(high)


def _extremes(values: Array, count: int) -> list[int]:
    """Positions of the `count` lowest values, lowest first."""
    if len(values) <= 4 * count:
        order: list[int] = np.argsort(values, kind="stable")[:count].tolist()
        return order
    lowest = np.sort(np.argpartition(values, count)[:count])
    order = lowest[np.argsort(values[lowest], kind="stable")].tolist()
    return order


def _exchange(state: State, high: int, lower: list[int], top: float) -> bool:
    """The move or swap with one of the `lower` OSTs that leaves the lower maximum of both, if it is below `top`."""
    ours = state.sizes(high)[1:]
    theirs = [state.sizes(low) for low in lower]
    cells = np.cumsum([len(ours) * len(t) for t in theirs])
    few = int(np.searchsorted(cells, MAX_CELLS, side="right"))
    if not few:
        return any(_exchange_with(state, high, low) for low in lower)
    lower, theirs = lower[:few], theirs[:few]
    partner = owners(lower, theirs)
    other = np.concatenate(theirs)
    change = ours[:, None] - other
    for row, column in best(_after(state, high, partner, change), top):
        low = int(partner[column])
        same = state.objects(low).get(int(other[column]))
        pair = free_pair(state, high, low, state.objects(high)[int(ours[row])], same)
        if pair is not None:
            state.carry_out(pair, low)
            return True
    return False


def _after(state: State, high: int, partner: Array, change: Array) -> Array:
    """The higher level of OST `high` and of each column's partner when `change` bytes have gone there."""
    v = state.levels
    ours = state.x[high] - change
    theirs = state.x[partner] + change
    worst: Array = np.maximum(
        np.maximum(v.base[high] + v.slope[high] * ours, v.base2[high] + v.slope2[high] * ours),
        np.maximum(
            v.base[partner] + v.slope[partner] * theirs, v.base2[partner] + v.slope2[partner] * theirs
        ),
    )
    worst[(change <= 0) | (theirs > v.room[partner])] = np.inf
    return worst


def best(worst: Array, top: float) -> Iterator[tuple[int, int]]:
    """Cells below `top`, the lowest first, at most `TRIES`."""
    flat = worst.ravel()
    below = np.flatnonzero(flat < top)
    if len(below) > TRIES:
        below = np.sort(below[np.argpartition(flat[below], TRIES)[:TRIES]])
    for cell in below[np.argsort(flat[below], kind="stable")].tolist():
        yield divmod(cell, worst.shape[1])


def _exchange_with(state: State, high: int, low: int) -> bool:
    """As `_exchange`, between two OSTs that hold very many sizes: only those nearest to the ideal."""
    top = float(state.level[high]) - 1e-9
    room = float(state.levels.room[low] - state.x[low])
    x_high, x_low = float(state.x[high]), float(state.x[low])
    ours, theirs = state.objects(high), state.objects(low)
    options = []
    for change, weight, other in near(ours, theirs, _evening(state, high, low)):
        if change <= room:
            worst = max(state.level_at(high, x_high - change), state.level_at(low, x_low + change))
            if worst < top:
                options.append((worst, weight, other))
    for _, weight, other in sorted(options)[:OPTIONS]:
        pair = free_pair(state, high, low, ours[weight], theirs.get(other))
        if pair is not None:
            state.carry_out(pair, low)
            return True
    return False


def _exchange_sets(state: State, high: int, lower: list[int], top: float) -> bool:
    """As `_exchange`, with up to two objects on either side; for OSTs that hold few sizes."""
    lower = [low for low in lower if len(state.objects(low)) <= MAX_SET_SIZES]
    if not lower or len(state.objects(high)) > MAX_SET_SIZES:
        return False
    our_sets, our_sums = state.sets(high)
    theirs = [state.sets(low) for low in lower]
    partner = owners(lower, [sums for _, sums in theirs])
    their_sets = [chosen for sets, _ in theirs for chosen in sets]
    change = our_sums[:, None] - np.concatenate([sums for _, sums in theirs])
    for row, column in best(_after(state, high, partner, change), top):
        low = int(partner[column])
        leaving = _free_set(state, state.objects(high), our_sets[row], low)
        coming = _free_set(state, state.objects(low), their_sets[column], high)
        if leaving is not None and coming is not None:
            for i in leaving:
                state.move(i, low)
            for j in coming:
                state.move(j, high)
            return True
    return False


def _sets(objects: dict[int, list[int]]) -> list[tuple[int, ...]]:
    """Sizes of no, one or two objects."""
    sizes = sorted(objects)
    twos = [(a, b) for n, a in enumerate(sizes) for b in sizes[n:] if a != b or len(objects[a]) > 1]
    return [(), *((a,) for a in sizes), *twos]


def _free_set(
    state: State, objects: dict[int, list[int]], sizes: tuple[int, ...], to: int
) -> list[int] | None:
    """Objects of these sizes, of different components, that may all go to OST `to`."""
    chosen: list[int] = []
    for size in sizes:
        components = {int(state.component[i]) for i in chosen}
        found = next(
            (
                i
                for i in objects[size]
                if i not in chosen and int(state.component[i]) not in components and state.may_move(i, to)
            ),
            None,
        )
        if found is None:
            return None
        chosen.append(found)
    return chosen


def _evening(state: State, high: int, low: int) -> float:
    """Bytes that would bring both OSTs to one level."""
    v = state.levels
    steep_high = v.base2[high] + v.slope2[high] * state.x[high] >= state.level[high]
    steep_low = v.base2[low] + v.slope2[low] * state.x[low] >= state.level[low]
    slope = (v.slope2 if steep_high else v.slope)[high] + (v.slope2 if steep_low else v.slope)[low]
    return float((state.level[high] - state.level[low]) / slope)


def near(
    ours: dict[int, list[int]], theirs: dict[int, list[int]], ideal: float
) -> Iterator[tuple[int, int, int]]:
    """(bytes, our size, their size or 0) of exchanges: all if few, else those nearest to `ideal`."""
    if len(ours) * len(theirs) <= FEW_PAIRS:
        for weight in ours:
            for other in (0, *theirs):
                if weight > other:
                    yield weight - other, weight, other
        return
    others = np.array([0, *sorted(theirs)], np.int64)
    weights = np.array(list(ours), np.int64)
    at = np.searchsorted(others, weights - ideal)
    for side in (at - 1, at):
        other = others[side.clip(0, len(others) - 1)]
        change = weights - other
        for i in np.argsort(np.abs(change - ideal), kind="stable")[: 2 * OPTIONS].tolist():
            if change[i] > 0:
                yield int(change[i]), int(weights[i]), int(other[i])


def free_pair(
    state: State, high: int, low: int, ours: list[int], theirs: list[int] | None
) -> tuple[int, int | None] | None:
    """An object of `ours` that may go to `low` and, for a swap, one of `theirs` that may go to `high`."""
    if theirs is None:
        return next(((i, None) for i in ours if state.may_move(i, low)), None)
    i = next((i for i in ours if state.may_move(i, low)), None)
    j = next((j for j in theirs if state.may_move(j, high)), None)
    if i is not None and j is not None:
        return i, j
    component = {int(state.component[i]): i for i in ours}
    for j in theirs:
        i = component.get(int(state.component[j]))
        if i is not None:
            return i, j
    return None


def owners(osts: list[int], parts: list[Array]) -> Array:
    return np.repeat(np.array(osts), [len(p) for p in parts])
