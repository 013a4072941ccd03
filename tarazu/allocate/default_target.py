"""A file system in which every file lies on one target where nobody places it: CephFS and its default data pool.

To place a file costs time there, which is the MDS's and so adds up over files (`CreateRequest.place_s`). Of the files
of a wave the largest are placed, so many that the wave and their placing end soonest; the others stay. What is placed
then is judged as a whole, as `lustres_own.loses` does it.

Bytes are weighed against seconds here, so that a target which was never seen busy must not count as slow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.allocate.eligible import room_bytes
from tarazu.allocate.problem import Array, Problem, build
from tarazu.allocate.timing import Timing
from tarazu.config import Weights
from tarazu.left import COSTS_MORE
from tarazu.model import Allocation, CreateRequest, FilePlacement, Left, SystemView

LEAST_BYTES_PER_S = 100e6
"""Of a target that was never seen busier: a disk writes as much."""
ALIKE = 0.5
"""Files of this share of the smallest one that is worth its placing are placed with it: sizes are forecasts."""


def staying(
    view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int], weights: Weights
) -> list[int]:
    """Which files are better not placed, ascending; none where placing costs nothing or the default cannot take them.

    Raises InfeasibleRequest or InsufficientResources, as `problem.build`.
    """
    if view.default_target is None or not any(r.place_s for r in requests):
        return []
    whole = build(view, requests, of_wave)
    default = _position(whole, view.default_target)
    if default is None:
        return []
    room = np.array([room_bytes(o, weights) for o in whole.osts], float)
    rate = _timing(whole, weights).rate
    fit = (room > 0) & ~np.array([o.degraded for o in whole.osts])
    if not fit.any():
        return []
    size = np.array([max(1, r.size_bytes) for r in requests], float)
    cost = np.array([r.place_s for r in requests])
    order = np.lexsort((-size, whole.waves))
    size, cost, wave = size[order], cost[order], whole.waves[order]
    begins = np.concatenate([[True], wave[1:] != wave[:-1]])
    first, of = np.flatnonzero(begins), np.cumsum(begins) - 1
    total = np.add.reduceat(size, first)[of]
    # Placed are a file and all larger ones of its wave; what then lies on the default target costs nothing.
    placed = _summed(size, first, of)
    even_s = total / rate[fit].sum()
    on_default = ((rate[default] * even_s - (total - placed)) / placed).clip(0, 1)
    largest_s = size[first][of] / rate[fit].max()
    slowest_s = np.maximum(np.maximum(even_s, largest_s), (total - placed) / rate[default])
    takes_s = slowest_s + _summed(cost, first, of) * (1 - on_default)
    least_s = np.minimum.reduceat(takes_s, first)[of]
    best = np.flatnonzero((takes_s == least_s) & (least_s < total / rate[default]))
    smallest = np.full(len(first), np.inf)
    at, where = np.unique(of[best], return_index=True)
    smallest[at] = size[best][where] * ALIKE
    stay = size < smallest[of]
    return sorted(order[stay].tolist()) if size[stay].sum() <= room[default] else []


def _summed(values: Array, first: Array, of: Array) -> Array:
    """Of each the sum up to it within its wave."""
    sums = np.cumsum(values)
    up_to: Array = sums - (sums - values)[first][of]
    return up_to


def with_staying(view: SystemView, requests: Sequence[CreateRequest], stay: Sequence[int]) -> SystemView:
    """The view in which these files are still to be written to the default target."""
    more = sum(requests[i].size_bytes for i in stay)
    osts = tuple(
        msgspec.structs.replace(o, promised_bytes=o.promised_bytes + more)
        if o.index == view.default_target
        else o
        for o in view.osts
    )
    return msgspec.structs.replace(view, osts=osts)


def joined(placed: Allocation, kept: Sequence[int], count: int) -> Allocation:
    """What was placed of `kept`, in the order of all `count` requests; the others stay."""
    files = [FilePlacement(())] * count
    left: dict[int, Left] = dict.fromkeys(sorted({*range(count)} - {*kept}), Left(COSTS_MORE))
    for at, file in zip(kept, placed.files, strict=True):
        files[at] = file
    left |= {kept[i]: why for i, why in placed.left.items()}
    return msgspec.structs.replace(placed, files=tuple(files), left=dict(sorted(left.items())))


def loses(ours: Problem, default: int, weights: Weights, least_gain: float) -> bool:
    """Whether the files are written sooner, by that share and all that placing them costs, where `ours` puts them, or
    must not lie on the default target.
    """
    position = _position(ours, default)
    if position is None or not room_bytes(ours.osts[position], weights):
        return True
    theirs = [dataclasses.replace(group, osts=np.full_like(group.osts, position)) for group in ours.groups]
    timing = _timing(ours, weights)
    followed = timing.follows(ours.groups) and timing.follows(theirs)
    moved = {n for g in ours.groups for n in g.requests[(g.osts != position).any(axis=1)].tolist()}
    cost_s = sum(ours.requests[n].place_s for n in moved)
    soonest_s = (timing.time_s(ours.groups, followed) + cost_s) * (1 + least_gain)
    fits = ours.total_bytes <= ours.osts[position].avail_bytes
    return not fits or soonest_s <= timing.time_s(theirs, followed)


def _position(problem: Problem, index: int) -> int | None:
    """Of a target that may be used."""
    return next((i for i, ost in enumerate(problem.osts) if ost.index == index), None)


def _timing(problem: Problem, weights: Weights) -> Timing:
    return Timing(problem, weights, least_bytes_per_s=LEAST_BYTES_PER_S)
