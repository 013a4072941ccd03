"""Lower bounds: what no allocation of these requests can beat.

Each bound is the lowest level L at which necessary conditions hold, found by bisection. With the capacity
that L leaves on every OST:
- the largest sums of object sizes that fit (not the capacities themselves) hold all the bytes;
- for each object size, the objects at least that large fit in number, at most one of each component on an
  OST. Both are checked for all objects, and for each pool alone. Where all objects are equal the second is
  exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tarazu.allocate import packing
from tarazu.allocate.cost import speed_of
from tarazu.allocate.problem import Array, Problem, build
from tarazu.model import CreateRequest, SystemView

MAX_SUMS = 20_000
"""Distinct sums of object sizes that are worth listing; beyond, every sum counts as possible."""
MAX_SUM_SIZES = 16
"""Object sizes beyond which their sums are not even tried, unless a large common divisor keeps them few."""
SEARCHED = 1.3
"""How far above the counting bound the exact search looks."""
MAX_SIZES = 48
"""Distinct object sizes whose number is checked; beyond, evenly chosen ones."""


@dataclass(slots=True)
class _Bins:
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
class _Items:
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


def utilization_bound(view: SystemView, requests: Sequence[CreateRequest]) -> float:
    """Lower bound of the OST cost: max / mean of the new bytes per usable OST (paper, equation 4)."""
    return utilization_of(build(view, requests), exact=True)


def fill_bound(view: SystemView, requests: Sequence[CreateRequest]) -> float:
    """Lower bound of the final fill's max / mean over the usable OSTs (used and promised bytes included)."""
    problem = build(view, requests)
    total = np.array([o.total_bytes for o in problem.osts], float)
    used = np.array([o.used_bytes + o.promised_bytes for o in problem.osts], float)
    highest = max(float((used / total).max()), _lowest_level(problem, total, used))
    mean = (float(used.sum()) + problem.total_bytes) / float(total.sum())
    return highest / mean if mean else 1.0


def time_bound(view: SystemView, requests: Sequence[CreateRequest]) -> float:
    """Lower bound of the completion time in seconds, each OST writing at its own speed."""
    problem = build(view, requests)
    known = speed_of(view)
    rate = np.array([known[o.index] for o in problem.osts])
    return _lowest_level(problem, rate, np.zeros(len(rate)))


def oss_bound(view: SystemView, requests: Sequence[CreateRequest], ost_cost: float | None = None) -> float:
    """Lower bound of the OSS cost: max / mean over servers of the new bytes per OST of the server.

    ost_cost: only placements whose OST cost is not above it count; the two goals can exclude one another.
    """
    problem = build(view, requests)
    servers = len(problem.oss_names)
    size = np.bincount(problem.oss, minlength=servers)
    width = np.array([np.bincount(problem.oss, row, servers) for row in problem.eligible.astype(float)])
    total = problem.total_bytes
    if not total:
        return 1.0
    level = _lowest(problem, size.astype(float), np.zeros(servers), width.astype(np.int64))
    mean = total / len(problem.osts)
    if ost_cost is not None:
        level = packing.servers_lowest(problem, int(ost_cost * mean * (1 + 1e-9)), max(level, mean))
    return max(1.0, level / mean)


def utilization_of(problem: Problem, exact: bool = False) -> float:
    """`utilization_bound` of a problem that is built already; `exact` adds the search of `packing.py`."""
    total, osts = problem.total_bytes, len(problem.osts)
    if not total:
        return 1.0
    level = _lowest_level(problem, np.ones(osts), np.zeros(osts))
    if exact:
        level = packing.pack(problem, level, int(level * SEARCHED)).bound
    return max(1.0, level * osts / total)


def _lowest_level(problem: Problem, rate: Array, base: Array) -> float:
    return _lowest(problem, rate, base, problem.eligible.astype(np.int64))


def _lowest(problem: Problem, rate: Array, base: Array, width: Array) -> float:
    if not problem.groups:
        return 0.0
    keys, inverse, count = np.unique(
        np.vstack([rate, base, width]), axis=1, return_inverse=True, return_counts=True
    )
    del inverse
    bins = _Bins(keys[0], keys[1], keys[2:].astype(np.int64), count)
    high = 1.01 * (problem.total_bytes + float(base.sum())) / float(rate.sum()) + 1e-12
    families = _families(problem, bins, high)
    while not all(_holds(bins, items, high) for items in families):
        high *= 2
        # The sums are complete only up to the level they were listed for.
        families = _families(problem, bins, high)
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2
        if all(_holds(bins, items, middle) for items in families):
            high = middle
        else:
            low = middle
        if high - low <= 1e-13 * high:
            break
    return low


def _families(problem: Problem, bins: _Bins, level: float) -> list[_Items]:
    """All objects together, then those of each pool where there are several."""
    sets = sorted({g.eligible for g in problem.groups})
    together = bins.width[sets].max(axis=0)
    families = [_items(problem, set(sets), together, bins, level)]
    if len(sets) > 1:
        families += [_items(problem, {s}, bins.width[s], bins, level) for s in sets]
    return families


def _items(problem: Problem, sets: set[int], width: Array, bins: _Bins, level: float) -> _Items:
    groups = [g for g in problem.groups if g.eligible in sets]
    flat = np.concatenate([g.weights.ravel() for g in groups])
    sizes, counts = np.unique(flat, return_counts=True)
    largest = np.sort(np.concatenate([g.weights.max(axis=1) for g in groups]))
    at_least = np.cumsum(counts[::-1])[::-1]
    members = len(largest) - np.searchsorted(largest, sizes, side="left")
    most = float((bins.rate * level - bins.base).max()) * (1 + 1e-9)
    sums = _sums(sizes, members * int(width.max()), most)
    if len(sizes) > MAX_SIZES:
        chosen = np.unique(np.linspace(0, len(sizes) - 1, MAX_SIZES).astype(int))
        sizes, at_least, members = sizes[chosen], at_least[chosen], members[chosen]
    return _Items(width, int(flat.sum()), sizes, at_least, members, sums)


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


def _holds(bins: _Bins, items: _Items, level: float) -> bool:
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
