"""Sets of applications by their least I/O load, I/O-load(π_sys), as paper A's figures have them below (section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tarazu.errors import TarazuError
from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.curve import Curve
from tarazu.parts.forwarding.study.characteristics import io_load, n_sys
from tarazu.parts.forwarding.study.workload import Set, generate, resources

LEVELS = tuple(n / 10 for n in range(1, 11))
WIDTH = 0.05
"""A level holds what is not further away than this."""
APPLICATIONS = 40
"""K: with 480 nodes all have the share of their size exactly (4 of 90, 12 of 8, 24 of one), and as they share 20
resources Θ can be up to 2."""
SETS = 100
"""At least so many at each level (section 5.4)."""
BLOCK = 10_000
"""Seeds of a block; so many are tried."""
HIGHEST = 0.99
"""Of Θ * N / K, which is below 1."""


def sets_at(
    level: float,
    curves: Sequence[Curve],
    kind: Kind,
    count: int = SETS,
    block: int = 0,
    applications: int = APPLICATIONS,
) -> list[Set]:
    """`count` sets with level - WIDTH <= I/O-load(π_sys) <= level + WIDTH; the same arguments give the same ones.

    Those of another block are others. Θ is drawn so that the load falls there more often than not; what falls
    elsewhere is left out.
    """
    among = resources(kind)
    random = np.random.default_rng([round(1000 * level), applications, block])
    sets: list[Set] = []
    asked = got = 0.0
    seed = BLOCK * block
    while len(sets) < count:
        ratio = (got + level) / (asked + level)  # of the least load to Θ, as seen so far
        theta = random.uniform(level - WIDTH, level + WIDTH) / ratio
        highest = HIGHEST * applications / among.count
        one = generate(curves, applications, min(theta, highest), seed, among)
        seed += 1
        load = least_load(one, kind)
        asked, got = asked + one.theta, got + load
        if abs(load - level) <= WIDTH:
            sets.append(one)
        elif seed - BLOCK * block == BLOCK:
            raise TarazuError(
                f"expected sets of applications with an I/O load of {level:g}, found {len(sets)} "
                f"of {count} in {BLOCK} with these curves"
            )
    return sets


def least_load(of: Set, kind: Kind) -> float:
    """I/O-load(π_sys)."""
    among = resources(kind)
    return io_load(of.applications, [n_sys(a, among.count) for a in of.applications], among)
