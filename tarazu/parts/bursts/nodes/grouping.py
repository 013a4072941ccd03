"""A job's ranks in groups, one an I/O node: of equal size, or of equal traffic (spatially-bursty-io, 6.4.1, 6.4.2).

Slurm hands out ranks in the order of the machine's nodes. So where a rank lies can be chosen only by how many nodes
of each I/O node the job gets (`ordered`). The paper regroups ranks at will, which Slurm cannot follow.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np

CLOSE = 1e-9
"""Relative: loads that differ by less are the same."""
HALVINGS = 25
"""After so many the busiest group's traffic is known to 3e-8 of all."""


def even(nodes: int, room: Sequence[int]) -> list[int]:
    """Nodes of each group, as equal as `room` (idle nodes of each) allows; the first have one more.

    `nodes` is at most the sum of `room`."""
    sizes = [0] * len(room)
    left = nodes
    by_room = sorted(range(len(room)), key=lambda g: room[g])
    for position, group in enumerate(by_room):
        sizes[group] = min(room[group], left // (len(room) - position))
        left -= sizes[group]
    return _first_have_more(sizes, room)


def _first_have_more(sizes: list[int], room: Sequence[int]) -> list[int]:
    """Groups that differ by one, the larger ones to the front, where there is room."""
    top = max(sizes, default=0)
    large = [g for g, size in enumerate(sizes) if size == top]
    near = [g for g, size in enumerate(sizes) if size in (top - 1, top) and room[g] >= top]
    for group in large:
        sizes[group] = top - 1
    for group in sorted(near)[: len(large)]:
        sizes[group] = top
    return sizes


def ordered(shares: Sequence[float], room: Sequence[int]) -> list[int]:
    """Ranks of each group, consecutive ones: the least possible traffic in the busiest group, then as equal as that
    leaves. `shares`: traffic of each rank, >= 0; their number is at most the sum of `room`."""
    sums = [0.0, *np.cumsum(np.asarray(shares, dtype=np.float64)).tolist()]
    ranks, groups = len(shares), len(room)
    low, high = max([sums[-1] / max(1, groups), *shares], default=0.0), sums[-1]
    if _ends(sums, room, low)[-1] == ranks:
        high = low
    for _ in range(HALVINGS if high > low else 0):
        middle = (low + high) / 2
        if _ends(sums, room, middle)[-1] == ranks:
            high = middle
        else:
            low = middle
    most = _ends(sums, room, high)
    least = _starts(sums, room, high)
    sizes, start = [], 0
    for group in range(groups):
        target = sums[start] + (sums[-1] - sums[start]) / (groups - group)
        end = bisect.bisect_left(sums, target, start, ranks)
        if end > start + 1 and target - sums[end - 1] < sums[end] - target:
            end -= 1
        reach = min(most[group], start + room[group], _reach(sums, sums[start], high))
        end = max(least[group + 1], min(end, reach))
        sizes.append(end - start)
        start = end
    return sizes


def _reach(sums: list[float], before: float, load: float) -> int:
    return bisect.bisect_right(sums, before + load * (1 + CLOSE)) - 1


def _ends(sums: list[float], room: Sequence[int], load: float) -> list[int]:
    """Where each group ends at the latest, if none carries more than `load`."""
    ends, at = [], 0
    for free in room:
        at = min(at + free, _reach(sums, sums[at], load))
        ends.append(at)
    return ends or [0]


def _starts(sums: list[float], room: Sequence[int], load: float) -> list[int]:
    """Where each group (and the end behind the last) starts at the earliest, so that it and those behind it hold
    the rest."""
    at = len(sums) - 1
    starts = [at]
    for free in reversed(room):
        start = bisect.bisect_left(sums, sums[at] - load * (1 + CLOSE))
        at = max(at - free, start)
        starts.append(at)
    return starts[::-1]
