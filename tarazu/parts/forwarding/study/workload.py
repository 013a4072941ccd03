"""Sets of applications as paper A generates them (section 5.3): curves at random, a common horizon, a given I/O load.

The load is that of one resource for each application: in expectation I/O-load(π₁) = Θ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Application, Kind, Resources
from tarazu.parts.forwarding.curve import Curve

RESOURCES, NODES = 20, 480
"""N and Q^cpu of all experiments."""
HORIZON_S = 5000.0
"""T_cpu + T_cf_io(1) of each application."""
PHASES = (2, 20)
SIZES = ((0.1, 0.75), (0.3, 0.2), (0.6, 0.05))
"""Large, medium and small applications: of all of them, and of the compute nodes."""


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
