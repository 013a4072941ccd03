"""How many resources one more application gets, beside those that run and keep the number that they have.

A policy allocates for all at once. Where what the others have cannot be changed, as the stripes of files that lie on
their OSTs, its answer for the last of them is only nearly right; `joint`'s model of congestion answers just that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.forwarding import policies
from tarazu.forwarding.application import Application, Resources
from tarazu.forwarding.joint.congestion import Modelled, system
from tarazu.forwarding.joint.moves import choices
from tarazu.forwarding.placement.simple import LeastStressed
from tarazu.forwarding.tables import bandwidths

MOST_LOSS = 4.0
"""Times its I/O with its best number, alone. What is always in I/O and always in the way still leaves it so much."""


def count(policy: str, running: Sequence[tuple[Application, int]], new: Application, among: Resources) -> int:
    """For `new`; `running`: each with the number that it has. Raises BadInput for a policy that there is not.

    Never fewer, nor so many more than it can use, that its I/O alone would take more than MOST_LOSS times what it takes
    with its best number: whatever the others say of themselves.

    With `joint` the number with which Mean-I/O-SlowDown is the least under its model, each number placed on what is
    stressed least (GC); with any other policy what that gives the last of all.
    """
    scheduler = policies.named(policy)
    applications = [*(application for application, _ in running), new]
    if policy != "joint":
        return _bounded(scheduler.schedule(applications, among).counts[-1], new, among.count)
    of = system(applications, among)
    taken = [min(number, among.count) for _, number in running]
    place = LeastStressed().place

    def slowdown(number: int) -> float:
        placed = place(applications, [*taken, number], among).placed
        return Modelled(of, [np.array(resources) for resources in placed]).mean_slowdown

    # Of numbers that are as good the least: whoever comes next has more room.
    numbers: list[int] = choices(of, len(applications) - 1).tolist()
    return _bounded(min(numbers, key=lambda number: (round(slowdown(number), 9), number)), new, among.count)


def _bounded(number: int, new: Application, most: int) -> int:
    """The nearest number with which it does not lose too much; of two the smaller one."""
    rates = bandwidths(new.curve, most)
    good = np.flatnonzero(rates >= rates.max() / MOST_LOSS) + 1
    return int(good[np.abs(good - number).argmin()])
