"""Search for few object sizes, over the ways in which one OST can be filled below a level.

Placing becomes counting: how many OSTs get which combination of sizes, where the OSTs that the same combinations fit
are one kind, equal ones or not. That is small (tens of combinations for each kind) where moves and swaps get stuck:
few, large objects. The answer is how many objects of each size each OST holds; that the objects of a component go to
different OSTs can nearly always be arranged afterwards (`dealing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tarazu.allocate.filling import fill
from tarazu.allocate.marginal_cost import Levels
from tarazu.allocate.problem import Array, Problem

MAX_PATTERNS = 4_000
"""Fillings of one OST; beyond, counting arguments and exchanges have to do."""
MAX_VARIABLES = 1_500
"""Fillings of all kinds of OSTs together."""
MAX_SIZES = 10
MERGED_SIZES = 64
"""Sizes up to which it is tried to count similar ones as one."""
SLACK = 1e-9
"""Relative rounding error of a level, in favour of "fits"."""

Search = Callable[[Array, Array, Sequence[tuple[int, Array]]], list[list[int]] | Literal[False] | None]
"""As `fill`; False where there is no such filling."""


@dataclass(slots=True)
class ObjectSizes:
    """All objects of a problem by size."""

    sizes: Array
    """(k,) distinct, ascending, bytes."""
    counts: Array
    """(k,) objects of that size."""
    most: Array
    """(k,) components that have one of that size: so many fit on an OST at most."""
    groups: list[Array]
    """Of each group (m, c): which size each object has."""


@dataclass(slots=True)
class Packing:
    """A filling of all OSTs."""

    objects: ObjectSizes
    counts: Array
    """(osts, k) objects of each size on each OST."""
    kinds: Array
    """(osts,) how many fillings fit: OSTs that have the same number may exchange what they hold."""


def pack(
    problem: Problem,
    levels: Levels,
    lowest: float,
    highest: float,
    tolerance: float,
    merged: float = 0.0,
    search: Search = fill,
) -> tuple[float, Packing | None]:
    """Narrow the lowest possible highest level, known to be `lowest` or more, below `highest`: (bound, best filling).

    tolerance: relative distance of bound and filling at which the search ends; merged: share of all bytes by which
    objects may be taken for larger than they are, so that sizes are few; above 0 nothing is proven, and nothing by
    `fill`. The filling is None when none better was found.
    """
    known = None
    if highest > lowest * (1 + tolerance):
        known = fillings(problem, levels.bytes_below(highest).max(), merged)
    if known is None:
        return lowest, None
    objects, patterns = known
    loads = patterns @ objects.sizes
    reachable = levels.reachable(loads)
    candidates = reachable[(reachable >= lowest * (1 - SLACK)) & (reachable < highest)]
    best, proven = None, True
    # The highest OST is at one of the candidates, or at `highest` or above. First, whether there is anything to win;
    # then, whether all of it is; between the two by halves. A proof goes on up to `highest` itself.
    low, high = 0, len(candidates)
    first = np.searchsorted(candidates, (highest * (1 - tolerance), lowest * (1 + tolerance))) - (0, 1)
    probes = first.clip(low, high - 1).tolist()
    ends = np.append(candidates, highest if merged else np.inf)
    while low < high and ends[high] > ends[low] * (1 + tolerance):
        middle = probes.pop(0) if probes else (low + high) // 2
        if not low <= middle < high:
            continue
        filling = _fits(objects, patterns, loads, levels, candidates[middle], search)
        proven = proven and filling is not None
        if filling:
            high, best = middle, filling
        else:
            low = middle + 1
    return max(lowest, min(highest, float(ends[low]))) if proven else lowest, best


def fillings(problem: Problem, limit: float, merged: float = 0.0) -> tuple[ObjectSizes, Array] | None:
    """The objects by size, and every combination of sizes up to `limit` bytes; None if there are too many, or pools."""
    if not problem.groups or not problem.eligible[[g.eligible for g in problem.groups]].all():
        return None
    # Where there are many sizes, a few members of each group have many already.
    few = [np.unique(g.weights[:MERGED_SIZES]) for g in problem.groups]
    if len(np.unique(np.concatenate(few))) > MERGED_SIZES:
        return None
    sizes, counts = np.unique(np.concatenate([g.weights.ravel() for g in problem.groups]), return_counts=True)
    spare = merged * problem.total_bytes
    both = None
    while len(sizes) <= MERGED_SIZES:
        if len(sizes) <= MAX_SIZES:
            objects = objects_of(problem, sizes)
            patterns = _patterns(objects, limit)
            if patterns is not None:
                both = objects, patterns
        larger = counts[:-1] * np.diff(sizes)
        # As few as may be: every kind of OST has all of them.
        if not len(larger) or larger.min() > spare:
            break
        pair = int(np.argmin(larger))
        spare -= float(larger[pair])
        counts[pair + 1] += counts[pair]
        sizes, counts = np.delete(sizes, pair), np.delete(counts, pair)
    return both


def objects_of(problem: Problem, sizes: Array) -> ObjectSizes:
    """Each object is of the smallest of `sizes` (ascending) that is not below its own."""
    groups = [np.searchsorted(sizes, g.weights) for g in problem.groups]
    counts, most = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    for group in groups:
        counts += np.bincount(group.ravel(), minlength=len(sizes))
        most += [np.count_nonzero((group == k).any(axis=1)) for k in range(len(sizes))]
    return ObjectSizes(sizes, counts, most, groups)


def _patterns(objects: ObjectSizes, limit: float) -> Array | None:
    """Every combination of sizes up to `limit` bytes, the smallest sums first; None when there are too many."""
    patterns = np.zeros((1, 0), np.int64)
    room = np.array([int(limit)])
    for size, available in zip(objects.sizes[::-1].tolist(), objects.most[::-1].tolist()):
        choices = np.minimum(available, room // size) + 1
        if choices.sum() > MAX_PATTERNS:
            return None
        number = np.arange(choices.sum()) - np.repeat(np.cumsum(choices) - choices, choices)
        room = np.repeat(room, choices) - number * size
        patterns = np.column_stack([number, np.repeat(patterns, choices, axis=0)])
    return patterns[np.argsort(-room, kind="stable")]


def _fits(
    objects: ObjectSizes, patterns: Array, loads: Array, levels: Levels, level: float, search: Search
) -> Packing | Literal[False] | None:
    """A filling with every OST at `level` or below; False when there is none, None when undecided."""
    limit = np.minimum(levels.bytes_below(level), levels.room) * (1 + SLACK)
    fitting = np.searchsorted(loads, limit, side="right")
    more = np.where(patterns < objects.most, objects.sizes, np.iinfo(np.int64).max // 2).min(axis=1)
    kinds = []
    for number in np.unique(fitting[fitting > 0]).tolist():
        osts = np.flatnonzero(fitting == number)
        # Patterns to which nothing can be added are enough: an object too many is left out afterwards.
        full = np.flatnonzero(loads[:number] + more[:number] > limit[osts].min())
        kinds.append((osts, patterns[full]))
    if sum(len(full) for _, full in kinds) > MAX_VARIABLES:
        return None
    uses = search(objects.sizes, objects.counts, [(len(osts), full) for osts, full in kinds])
    if not uses:
        return None if uses is None else False
    filled = np.zeros((len(limit), len(objects.sizes)), np.int64)
    for (osts, full), times in zip(kinds, uses):
        rows = np.repeat(full, times, axis=0)
        filled[osts[: len(rows)]] = rows
    for k, excess in enumerate((filled.sum(axis=0) - objects.counts).tolist()):
        for _ in range(excess):
            holders = np.flatnonzero(filled[:, k])
            highest = levels.at(filled[holders] @ objects.sizes, holders)
            filled[holders[np.argmax(highest)], k] -= 1
    return Packing(objects, filled, fitting)
