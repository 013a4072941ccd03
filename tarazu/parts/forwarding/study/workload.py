"""Sets of applications as paper A generates them (section 5.3): curves at random, a common horizon, a given I/O load.

The load is that of one resource for each application: in expectation I/O-load(π₁) = Θ. The figures have the
sets by their least load, I/O-load(π_sys).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.errors import TarazuError
from tarazu.parts.forwarding.application import Application, Kind, Resources
from tarazu.parts.forwarding.curve import Curve
from tarazu.parts.forwarding.tables import table

RESOURCES, NODES = 20, 480
"""N and Q^cpu of all experiments."""
HORIZON_S = 5000.0
"""T_cpu + T_cf_io(1) of each application."""
PHASES = (2, 20)
SIZES = ((0.1, 0.75), (0.3, 0.2), (0.6, 0.05))
"""Large, medium and small applications: of all of them, and of the compute nodes."""
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


class Set(msgspec.Struct, frozen=True):
    """Applications that run at the same time."""

    applications: tuple[Application, ...]
    curves: tuple[int, ...]
    """For each the number of its curve among those that were given."""
    theta: float
    seed: int


def resources(kind: Kind) -> Resources:
    """Those of all experiments."""
    return Resources(kind, RESOURCES, NODES)


def ratio_bound(share: float) -> float:
    """b > 0 with log(1 + b) = b * share, for 0 < share < 1: X uniform in [0, b] has E[1 / (1 + X)] = share.

    With y = -share * (1 + b) the equation is y * exp(y) = -share * exp(-share); the solution that is not b = 0 lies on
    the branch of Lambert's W below -1.
    """
    from scipy.special import lambertw

    if not 0 < share < 1:
        raise ValueError(f"expected an I/O stress between 0 and 1 for each application, found {share}")
    # Towards share = 1 rounding may meet the branch point: there b goes to 0.
    return max(0.0, float(-lambertw(-share * math.exp(-share), -1).real / share) - 1)


def nodes_of(count: int, nodes: int) -> list[int]:
    """Q_j of so many applications, the largest first: at least one each, never more than `nodes` together.

    Raises ValueError for more applications than nodes.
    """
    if not 0 < count <= nodes:
        raise ValueError(f"expected 1 to {nodes} applications, found {count}")
    ends = [round(count * sum(part for part, _ in SIZES[: n + 1])) for n in range(len(SIZES))]
    sizes: list[int] = []
    for end, (_, share) in zip(ends, SIZES):
        members = end - len(sizes)
        sizes += [max(1, math.floor(share * nodes / members))] * members if members else []
    over = sum(sizes) - nodes  # where the smallest could not have less than one
    for place in range(count):
        taken = min(max(over, 0), sizes[place] - 1)
        sizes[place] -= taken
        over -= taken
    return sorted(sizes, reverse=True)


def generate(curves: Sequence[Curve], count: int, theta: float, seed: int, among: Resources) -> Set:
    """`count` (K) applications with Θ = theta. The same arguments give the same set.

    Raises ValueError where Θ * N / K is not between 0 and 1: an application's stress on one resource is at most 1.
    """
    bound = ratio_bound(theta * among.count / count)
    random = np.random.default_rng([seed, count])
    chosen = random.integers(len(curves), size=count).tolist()
    phases = random.integers(PHASES[0], PHASES[1] + 1, size=count).tolist()
    ratios = random.uniform(0, bound, size=count).tolist()
    nodes = random.permutation(nodes_of(count, among.nodes)).tolist()
    return Set(
        tuple(
            application(f"{number}", nodes[number], curves[chosen[number]], ratios[number], phases[number])
            for number in range(count)
        ),
        tuple(chosen),
        theta,
        seed,
    )


def application(name: str, nodes: int, curve: Curve, ratio: float, phases: int) -> Application:
    """With X = T_cpu / T_cf_io(1) = ratio."""
    return Application(
        name=name,
        nodes=nodes,
        curve=curve,
        cpu_s=HORIZON_S * (1 - 1 / (1 + ratio)),
        io_bytes=HORIZON_S * curve.bandwidth(1) / (1 + ratio),
        phases=phases,
    )


def sets_at(
    level: float, curves: Sequence[Curve], kind: Kind, count: int = SETS, block: int = 0
) -> list[Set]:
    """`count` sets with level - WIDTH <= I/O-load(π_sys) <= level + WIDTH; the same arguments give the same ones.

    Those of another block are others. Θ is drawn so that the load falls there more often than not; what falls
    elsewhere is left out.
    """
    among = resources(kind)
    random = np.random.default_rng([round(1000 * level), APPLICATIONS, block])
    sets: list[Set] = []
    asked = got = 0.0
    seed = BLOCK * block
    while len(sets) < count:
        ratio = (got + level) / (asked + level)  # of the least load to Θ, as seen so far
        theta = random.uniform(level - WIDTH, level + WIDTH) / ratio
        highest = HIGHEST * APPLICATIONS / among.count
        one = generate(curves, APPLICATIONS, min(theta, highest), seed, among)
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
    least: list[float] = table(of.applications, among).stress.min(axis=1).tolist()
    return sum(least) / among.count
