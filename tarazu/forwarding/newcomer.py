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


def count(policy: str, running: Sequence[tuple[Application, int]], new: Application, among: Resources) -> int:
    """For `new`; `running`: each with the number that it has. Raises BadInput for a policy that there is not.

    With `joint` the number with which Mean-I/O-SlowDown is the least under its model, each number placed on what is
    stressed least (GC); with any other policy what that gives the last of all.
    """
    scheduler = policies.named(policy)
    applications = [*(application for application, _ in running), new]
    if policy != "joint":
        return scheduler.schedule(applications, among).counts[-1]
    of = system(applications, among)
    taken = [min(number, among.count) for _, number in running]
    place = LeastStressed().place

    def slowdown(number: int) -> float:
        placed = place(applications, [*taken, number], among).placed
        return Modelled(of, [np.array(resources) for resources in placed]).mean_slowdown

    # Of numbers that are as good the least: whoever comes next has more room.
    numbers: list[int] = choices(of, len(applications) - 1).tolist()
    return min(numbers, key=lambda number: (round(slowdown(number), 9), number))
