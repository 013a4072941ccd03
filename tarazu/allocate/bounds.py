"""Lower bounds: what no allocation of these requests can beat.

Each bound is the lowest level at which the necessary conditions of `tarazu.layout.fitting` hold, for all objects
together and for each pool alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tarazu.allocate.eligible import speed_of
from tarazu.allocate.problem import Array, Problem, build
from tarazu.layout.fitting import PRECISION, Bins, Items, items, lowest, lowest_alike
from tarazu.layout.objects import component_object_bytes
from tarazu.model import CreateRequest, SystemView


def utilization_bound(view: SystemView, requests: Sequence[CreateRequest]) -> float:
    """Lower bound of the OST cost: max / mean of the new bytes per usable OST (paper, equation 4)."""
    return utilization_of(build(view, requests))


def fill_bound(view: SystemView, requests: Sequence[CreateRequest]) -> float:
    """Lower bound of the final fill's max / mean over the usable OSTs (used and promised bytes included)."""
    problem = build(view, requests)
    total = np.array([o.total_bytes for o in problem.osts], float)
    used = np.array([o.used_bytes + o.promised_bytes for o in problem.osts], float)
    highest = max(float((used / total).max()), lowest_level(problem, total, used))
    mean = (float(used.sum()) + problem.total_bytes) / float(total.sum())
    return highest / mean if mean else 1.0


def time_bound(view: SystemView, requests: Sequence[CreateRequest]) -> float:
    """Lower bound of the completion time in seconds, each OST writing at its own speed."""
    problem = build(view, requests)
    known = speed_of(view)
    rate = np.array([known[o.index] for o in problem.osts])
    return lowest_level(problem, rate, np.zeros(len(rate)))


def oss_bound(view: SystemView, requests: Sequence[CreateRequest]) -> float:
    """Lower bound of the OSS cost: max / mean over servers of the new bytes per OST of the server."""
    problem = build(view, requests)
    servers = len(problem.oss_names)
    size = np.bincount(problem.oss, minlength=servers)
    width = np.array([np.bincount(problem.oss, row, servers) for row in problem.eligible.astype(float)])
    total = problem.total_bytes
    if not total:
        return 1.0
    level = _lowest(problem, size.astype(float), np.zeros(servers), width.astype(np.int64))
    return max(1.0, level * len(problem.osts) / total)


def utilization_of(problem: Problem, precision: float = PRECISION) -> float:
    """`utilization_bound` of a problem that is built already; `precision`: relative distance below the bound at which
    its search ends.
    """
    total, osts = problem.total_bytes, len(problem.osts)
    if not total:
        return 1.0
    level = lowest_level(problem, np.ones(osts), np.zeros(osts), precision)
    return max(1.0, level * osts / total)


def alike_bound(osts: int, request: CreateRequest, files: int) -> float:
    """`utilization_bound` of `files` files that are all alike on `osts` OSTs that are alike, however many these are.

    Pools are left out: all OSTs may serve every component. The mean is that of the files' bytes, whatever lies on
    the MDT among them.
    """
    objects: Counter[int] = Counter()
    largest: list[int] = []
    for component in request.layout.components[: request.layout.covered(request.size_bytes)]:
        sizes = component_object_bytes(component, request.size_bytes)
        objects.update(size for size in sizes if size)
        # More stripes than OSTs: so many components of distinct OSTs each.
        largest += [max(sizes[at : at + osts]) for at in range(0, len(sizes), osts)]
    if not objects:
        return 1.0
    every = np.array([(size, files * number) for size, number in objects.items()], np.int64)
    level = lowest_alike(osts, every, np.repeat(np.array(largest, np.int64), files))
    return max(1.0, level * osts / (files * request.size_bytes))


def lowest_level(problem: Problem, rate: Array, base: Array, precision: float = PRECISION) -> float:
    """Lower bound of the highest level where OST j is at L with `rate[j] * L - base[j]` new bytes."""
    return _lowest(problem, rate, base, problem.eligible.astype(np.int64), precision)


def _lowest(problem: Problem, rate: Array, base: Array, width: Array, precision: float = PRECISION) -> float:
    if not problem.groups:
        return 0.0
    keys, count = np.unique(np.vstack([rate, base, width]), axis=1, return_counts=True)
    bins = Bins(keys[0], keys[1], keys[2:].astype(np.int64), count)
    start = 1.01 * (problem.total_bytes + float(base.sum())) / float(rate.sum()) + 1e-12
    return lowest(bins, lambda level: _families(problem, bins, level), start, precision)


def _families(problem: Problem, bins: Bins, level: float) -> list[Items]:
    """All objects together, then those of each pool where there are several."""
    sets = sorted({g.eligible for g in problem.groups})
    together = bins.width[sets].max(axis=0)
    families = [_items(problem, set(sets), together, bins, level)]
    if len(sets) > 1:
        families += [_items(problem, {s}, bins.width[s], bins, level) for s in sets]
    return families


def _items(problem: Problem, sets: set[int], width: Array, bins: Bins, level: float) -> Items:
    groups = [g for g in problem.groups if g.eligible in sets]
    flat = np.concatenate([g.weights.ravel() for g in groups])
    # Objects that stay empty are placed as if they held a byte; they fit anywhere.
    flat = flat[flat > 1] if flat.max() > 1 else flat
    sizes, counts = np.unique(flat, return_counts=True)
    largest = np.sort(np.concatenate([g.weights.max(axis=1) for g in groups]))
    return items(width, sizes, counts, largest, bins, level)
