"""Sets of applications by their least I/O load, I/O-load(π_sys), as paper A's figures have them below (section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.forwarding.application import Kind, io_load, n_sys
from tarazu.forwarding.curve import Curve
from tarazu.sim.forwarding.workload import Set, generate, resources

LEVELS = tuple(n / 10 for n in range(1, 11))
WIDTH = 0.05
"""A level holds what is not further away than this."""
APPLICATIONS = 40
"""K: with 480 nodes all have the share of their size exactly (4 of 90, 12 of 8, 24 of one), and as they share 20
resources Θ can be up to 2."""
SETS = 100
"""At least so many at each level (section 5.4)."""


def sets_at(
    level: float, curves: Sequence[Curve], kind: Kind, count: int = SETS, applications: int = APPLICATIONS
) -> list[Set]:
    """`count` sets with level - WIDTH <= I/O-load(π_sys) <= level + WIDTH; the same arguments give the same ones.

    Θ is drawn so that the load falls there more often than not; what falls elsewhere is left out.
    """
    among = resources(kind)
    random = np.random.default_rng([round(1000 * level), applications])
    found: list[Set] = []
    asked, got = 0.0, 0.0
    number = 0
    while len(found) < count:
        ratio = (got + level) / (asked + level)  # of the least load to Θ, as seen so far
        theta = random.uniform(level - WIDTH, level + WIDTH) / ratio
        share = min(theta / applications * among.count, 0.999)
        number += 1
        one = generate(curves, applications, share * applications / among.count, number, among)
        load = least_load(one, kind)
        asked, got = asked + one.theta, got + load
        if abs(load - level) <= WIDTH:
            found.append(one)
    return found


def least_load(of: Set, kind: Kind) -> float:
    """I/O-load(π_sys)."""
    among = resources(kind)
    return io_load(of.applications, [n_sys(a, among.count) for a in of.applications], among)
