"""The lowest level at which objects can fit into bins: necessary conditions, found by bisection.

With the capacity that a level leaves in every bin:
- the largest sums of object sizes that fit (not the capacities themselves) hold all the bytes;
- for each object size, the objects at least that large fit in number, at most one of each component in a bin.
Where all objects are equal the second is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MAX_SUMS = 20_000
"""Distinct sums of object sizes that are worth listing; beyond, every sum counts as possible."""
MAX_SUM_SIZES = 16
"""Object sizes beyond which their sums are not even tried, unless a large common divisor keeps them few."""
MAX_SIZES = 48
"""Distinct object sizes whose number is checked; beyond, evenly chosen ones."""
PRECISION = 1e-10
"""Relative distance below the lowest level at which its search ends."""


@dataclass(slots=True)
class Bins:
    """OSTs, or servers, that are alike are one row."""

    rate: Array
    """(n,) bytes per level."""
    base: Array
    """(n,) bytes there before."""
    width: Array
    """(sets, n) objects of one component that fit by distinctness; 0 where not eligible."""
    count: Array
    """(n,) how many are alike."""


@dataclass(slots=True)
class Items:
    """Objects that must go into one set of bins."""

    width: Array
    total: int
    sizes: Array
    """Distinct sizes, ascending."""
    at_least: Array
    """Objects of that size or larger."""
    members: Array
    """Components that have one of that size or larger."""
    sums: Array | None
    """Sums of sizes that one bin can hold at the highest level asked for, ascending; None when there are too many."""


def items(width: Array, sizes: Array, counts: Array, largest: Array, bins: Bins, level: float) -> Items:
    """Objects as `counts` of each of `sizes` (ascending, distinct); `largest`: of each component, ascending."""
    total = int((sizes * counts).sum())
    at_least = np.cumsum(counts[::-1])[::-1]
    members = len(largest) - np.searchsorted(largest, sizes, side="left")
    most = float((bins.rate * level - bins.base).max()) * (1 + 1e-9)
    sums = _sums(sizes, members * int(width.max()), most)
    if len(sizes) > MAX_SIZES:
        chosen = np.unique(np.linspace(0, len(sizes) - 1, MAX_SIZES).astype(int))
        sizes, at_least, members = sizes[chosen], at_least[chosen], members[chosen]
    return Items(width, total, sizes, at_least, members, sums)


def lowest(
    bins: Bins, families: Callable[[float], Sequence[Items]], start: float, precision: float = PRECISION
) -> float:
    """The lowest level at which all `families` may fit; these are listed for levels up to the one they are asked
    for. `start`: the level that is tried first; `precision`: as `PRECISION`.
    """
    high = start
    listed = families(high)
    while not all(_holds(bins, of, high) for of in listed):
        high *= 2
        # The sums are complete only up to the level they were listed for.
        listed = families(high)
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2
        if all(_holds(bins, of, middle) for of in listed):
            high = middle
        else:
            low = middle
        if high - low <= precision * high:
            break
    return low


def lowest_alike(osts: int, objects: Array, largest: Array) -> float:
    """The lowest possible bytes on the fullest of `osts` OSTs that are alike.

    objects: (n, 2) bytes and number of objects that are not empty; largest: bytes of each component's largest one.
    """
    sizes, inverse = np.unique(objects[:, 0], return_inverse=True)
    counts = np.bincount(inverse, objects[:, 1]).astype(np.int64)
    one = np.ones(1)
    bins = Bins(one, 0 * one, one[None].astype(np.int64), one * osts)
    mean = float((sizes * counts).sum()) / osts

    def families(level: float) -> list[Items]:
        return [items(bins.width[0], sizes, counts, np.sort(largest), bins, level)]

    return max(lowest(bins, families, mean * 1.01), mean)


def _sums(sizes: Array, copies: Array, most: float) -> Array | None:
    """Every sum of at most `copies[i]` objects of `sizes[i]` that is not above `most`."""
    if len(sizes) > MAX_SUM_SIZES and most / int(np.gcd.reduce(sizes)) > 50 * MAX_SUMS:
        return None
    sums = np.zeros(1, np.int64)
    for size, available in zip(sizes[::-1].tolist(), copies[::-1].tolist()):
        times = np.arange(min(available, int(most // size)) + 1) * size
        if len(times) * len(sums) > 20 * MAX_SUMS:
            return None
        # Sorting is many times faster than numpy's unique, which hashes.
        every = np.sort((sums[:, None] + times).ravel())
        every = every[: np.searchsorted(every, most, side="right")]
        sums = every[np.append(True, every[1:] != every[:-1])]
        if len(sums) > MAX_SUMS:
            return None
    return sums


def _holds(bins: Bins, items: Items, level: float) -> bool:
    """The necessary conditions at `level`, with a rounding error in favour of "holds"."""
    capacity = np.where(items.width > 0, bins.rate * level - bins.base, 0.0) * (1 + 1e-13)
    np.maximum(capacity, 0, out=capacity)
    held = capacity
    if items.sums is not None:
        held = items.sums[np.searchsorted(items.sums, capacity, side="right") - 1].astype(float)
    if float((held * bins.count).sum()) < items.total * (1 - 1e-13):
        return False
    fitting = np.floor(capacity[:, None] / items.sizes)
    number = np.minimum(fitting, items.members * items.width[:, None])
    return bool(((number * bins.count[:, None]).sum(axis=0) >= items.at_least).all())
