"""How many resources one more application gets, beside those that run and keep the number that they have.

A policy allocates for all at once. Where what the others have cannot be changed, as the stripes of files that lie on
their OSTs, its answer for the last of them is only nearly right; `joint`'s model of congestion answers just that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.parts.forwarding.application import Application, Resources, io_share
from tarazu.parts.forwarding.joint.congestion import Modelled, system
from tarazu.parts.forwarding.joint.moves import choices
from tarazu.parts.forwarding.joint.policy import least_stressed
from tarazu.parts.forwarding.tables import bandwidths

MOST_LOSS = 4.0
"""Times its I/O with its best number, alone. What is always in I/O and always in the way still leaves it so much."""


def count(running: Sequence[tuple[Application, int]], new: Application, among: Resources) -> int:
    """For `new`; `running`: each with the number that it has.

    The number with which Mean-I/O-SlowDown is the least under `joint`'s model, each number placed on what is stressed
    least (GC). Never fewer, nor so many more than it can use, that its I/O alone would take more than MOST_LOSS times
    what it takes with its best number: whatever the others say of themselves.
    """
    applications = [*(application for application, _ in running), new]
    of = system(applications, among)
    taken = [min(number, among.count) for _, number in running]

    def slowdown(number: int) -> float:
        counts = [*taken, number]
        busy = np.array(list(map(io_share, applications, counts)))
        placed = least_stressed(np.array(counts), busy, among.count)
        return Modelled(of, [np.sort(resources) for resources in placed]).mean_slowdown

    # Of numbers that are as good the least: whoever comes next has more room.
    numbers: list[int] = choices(of, len(applications) - 1).tolist()
    return bounded(min(numbers, key=lambda number: (round(slowdown(number), 9), number)), new, among.count)


def bounded(number: int, new: Application, most: int) -> int:
    """The nearest number with which it does not lose too much; of two the smaller one."""
    rates = bandwidths(new.curve, most)
    good = np.flatnonzero(rates >= rates.max() / MOST_LOSS) + 1
    return int(good[np.abs(good - number).argmin()])
