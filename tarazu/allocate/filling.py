"""Which filling each OST gets.

Every OST has one of the fillings that its kind allows. One after another changes to that after which fewest bytes of
objects are left over, even if those are more than now; what was just left is not taken again for a while (tabu search).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.allocate.problem import Array

STEPS = 400
"""Changes in all."""
MOST_LOOKED = 1_000_000
"""Changes that are looked at in all: some tens of milliseconds."""
TABU = 7
"""Steps for which a filling that was left is not taken again, and as many more by chance."""


def fill(sizes: Array, counts: Array, kinds: Sequence[tuple[int, Array]]) -> list[list[int]] | None:
    """How often each filling is used so that `counts` objects of each of `sizes` bytes have a place; None where that
    was not found, which proves nothing. kinds: how many OSTs, and the fillings of one of them (objects of each size).
    """
    fillings = np.concatenate([of_kind for _, of_kind in kinds])
    width = np.array([len(of_kind) for _, of_kind in kinds])
    first = np.cumsum(width) - width
    kind = np.repeat(np.arange(len(kinds)), width)
    uses = _shared_out(sizes, counts, kinds)
    over = uses @ fillings - counts
    """(k,) objects that would have a place beyond those there are; negative where some have none."""
    free_at = np.zeros(len(fillings), np.int64)
    random, looked = np.random.default_rng(0), 0
    for step in range(STEPS):
        if (over >= 0).all():
            return [part.tolist() for part in np.split(uses, first[1:])]
        used = np.flatnonzero(uses)
        choices = width[kind[used]]
        leaving = np.repeat(used, choices)
        taking = np.arange(len(leaving)) - np.repeat(
            np.cumsum(choices) - choices - first[kind[used]], choices
        )
        looked += len(leaving)
        if looked > MOST_LOOKED:
            break
        then = over + fillings[taking] - fillings[leaving]
        bytes_left = np.maximum(-then, 0) @ sizes.astype(float)
        # Ties by chance: less than a byte.
        cost = bytes_left + random.random(len(leaving)) / 2
        cost[(leaving == taking) | ((free_at[taking] > step) & (bytes_left > 0))] = np.inf
        change = int(np.argmin(cost))
        uses[leaving[change]] -= 1
        uses[taking[change]] += 1
        over = then[change]
        free_at[leaving[change]] = step + TABU + int(random.integers(TABU))
    return None


def _shared_out(sizes: Array, counts: Array, kinds: Sequence[tuple[int, Array]]) -> Array:
    """A use for every OST, the largest first: the filling that lacks fewest bytes of its share of what is left."""
    largest = [float((of_kind @ sizes).max()) for _, of_kind in kinds]
    room = sum(most * osts for most, (osts, _) in zip(largest, kinds))
    left = counts.astype(float)
    uses = [np.zeros(len(of_kind), np.int64) for _, of_kind in kinds]
    for number in np.argsort([-most for most in largest], kind="stable").tolist():
        osts, of_kind = kinds[number]
        for _ in range(osts):
            share = left * largest[number] / max(room, 1.0)
            chosen = int(np.argmin(np.maximum(share - of_kind, 0) @ sizes))
            uses[number][chosen] += 1
            left = np.maximum(left - of_kind[chosen], 0)
            room -= largest[number]
    return np.concatenate(uses)
