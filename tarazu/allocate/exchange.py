"""Second step: moves and swaps of single objects, or two at a time, that lower the highest OSTs."""

from __future__ import annotations

import numpy as np

from tarazu.allocate.draft import Draft
from tarazu.allocate.holdings import Holdings, best, owners
from tarazu.allocate.problem import Array

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
FEW_SIZES = 3
"""Object sizes in all up to which they are not: the exact search does better."""
SET_PARTNERS = 8
SET_STUCK = 6
"""Partners and highest OSTs for which such exchanges are tried."""
MAX_CELLS = 8_000
"""Pairs of object sizes, of an OST and its partners, that are looked at in one step."""
STEPS = 2_000
"""Steps in all, each of which tries one OST with all its partners."""
MOST_EVERYWHERE = 20_000
"""Objects up to which files that all lie on every OST are looked at object by object. Nothing can move there: beyond,
the order of each file's list decides.
"""
MOST_LISTS = 10_000
MOST_LISTED = 5_000_000
"""Files, and their objects, whose order is looked at; about two seconds."""


def lower_osts(draft: Draft) -> None:
    """Take from the highest OST as long as any exchange with a lower one leaves both below its level."""
    groups, width = draft.problem.groups, draft.problem.eligible.sum(axis=1)
    objects = sum(g.weights.size for g in groups)
    confined = objects > MOST_EVERYWHERE and all(g.weights.shape[1] == width[g.eligible] for g in groups)
    if confined:
        _order_lists(draft)
    elif groups:
        held = Holdings(draft)
        _lower(held, draft.even() + draft.enough)
        held.store()


def _order_lists(draft: Draft) -> None:
    """Each file's larger objects go to the lower of its OSTs, where that makes its highest OST no higher.

    Remainders of a stripe are little for a file, and much for thousands of them on the same OSTs.
    """
    levels, x = draft.levels, draft.placed.astype(float)
    lists, objects = MOST_LISTS, MOST_LISTED
    for group in draft.problem.groups:
        for member in np.flatnonzero(np.ptp(group.weights, axis=1)).tolist():
            row, weights = group.osts[member], group.weights[member]
            lists, objects = lists - 1, objects - len(row)
            if lists < 0 or objects < 0:
                break
            others = x[row] - weights
            new = row.copy()
            new[np.argsort(-weights, kind="stable")] = row[np.argsort(levels.at(others, row), kind="stable")]
            after = x.copy()
            after[row] = others
            after[new] += weights
            if (after > levels.room).any():
                continue
            if levels.at(after[row], row).max() <= levels.at(x[row], row).max():
                group.osts[member], x = new, after
    draft.placed = x


def _lower(held: Holdings, target: float) -> None:
    stuck: set[int] = set()
    effort = 0
    many = len(np.unique(held.weight)) > FEW_SIZES
    while effort < STEPS * held.draft.effort and len(stuck) <= MAX_STUCK and not held.draft.due:
        # Others' bytes on an OST where none of ours lie hold up nobody.
        highest = _extremes(np.where(held.x > 0, -held.level, 0.0), MAX_STUCK + 1)
        high = next((a for a in highest if a not in stuck), None)
        if high is None or held.level[high] <= target:
            return
        top = float(held.level[high]) - LEAST_GAIN
        lower = [low for low in _extremes(held.level, PARTNERS) if low != high and held.level[low] < top]
        effort += 1
        changed = bool(lower) and _exchange(held, high, lower, top)
        # Only now the costlier exchanges of two objects at a time.
        if not changed and len(stuck) < SET_STUCK and many:
            lower = lower[:SET_PARTNERS]
            effort += SET_EFFORT
            changed = _exchange_sets(held, high, lower, top)
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


def _exchange(held: Holdings, high: int, lower: list[int], top: float) -> bool:
    """The move or swap with one of the `lower` OSTs that leaves the lower maximum of both, if it is below `top`."""
    ours = held.sizes(high)[1:]
    theirs = [held.sizes(low) for low in lower]
    cells = np.cumsum([len(ours) * len(t) for t in theirs])
    few = int(np.searchsorted(cells, MAX_CELLS, side="right"))
    lower, theirs = lower[:few], theirs[:few]
    partner = owners(lower, theirs)
    other = np.concatenate(theirs)
    change = ours[:, None] - other
    for row, column in best(_after(held, high, partner, change), top):
        low = int(partner[column])
        if held.exchange(high, low, int(ours[row]), int(other[column])):
            return True
    return False


def _after(held: Holdings, high: int, partner: Array, change: Array) -> Array:
    """The higher level of OST `high` and of each column's partner when `change` bytes have gone there."""
    theirs = held.x[partner] + change
    levels = held.levels
    worst: Array = np.maximum(levels.at(held.x[high] - change, high), levels.at(theirs, partner))
    worst[(change <= 0) | (theirs > levels.room[partner])] = np.inf
    return worst


def _exchange_sets(held: Holdings, high: int, lower: list[int], top: float) -> bool:
    """As `_exchange`, with up to two objects on either side; for OSTs that hold few sizes."""
    lower = [low for low in lower if len(held.objects(low)) <= MAX_SET_SIZES]
    if not lower or len(held.objects(high)) > MAX_SET_SIZES:
        return False
    our_sets, our_sums = held.sets(high)
    theirs = [held.sets(low) for low in lower]
    partner = owners(lower, [sums for _, sums in theirs])
    their_sets = [chosen for sets, _ in theirs for chosen in sets]
    change = our_sums[:, None] - np.concatenate([sums for _, sums in theirs])
    for row, column in best(_after(held, high, partner, change), top):
        low = int(partner[column])
        leaving = _free_set(held, held.objects(high), our_sets[row], low)
        coming = _free_set(held, held.objects(low), their_sets[column], high)
        if leaving is not None and coming is not None:
            for i in leaving:
                held.move(i, low)
            for j in coming:
                held.move(j, high)
            return True
    return False


def _free_set(
    held: Holdings, objects: dict[int, list[int]], sizes: tuple[int, ...], to: int
) -> list[int] | None:
    """Objects of these sizes, of different components, that may all go to OST `to`."""
    chosen: list[int] = []
    for size in sizes:
        taken = {int(held.component[i]) for i in chosen}
        free = (i for i in objects[size] if int(held.component[i]) not in taken and held.may_move(i, to))
        candidate = next(free, None)
        if candidate is None:
            return None
        chosen.append(candidate)
    return chosen
