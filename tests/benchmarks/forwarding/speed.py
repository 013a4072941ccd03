"""How long TA and joint take for 1,000 applications on 1,000 resources, at rising load."""

from __future__ import annotations

import time
from random import Random

from tarazu.parts.forwarding.application import Application, Kind, Resources
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.study import curve_sets, schedulers
from tarazu.parts.forwarding.study.workload import generate
from tests.benchmarks.figure import Figure

MANY = 1000
LOADS = (0.1, 0.3, 0.6, 0.9)
MOST_S = 1.0
POLICIES = ("ta-gnc", "joint")


def wide(random: Random, most: int) -> Curve:
    """Of an application that gains up to hundreds of resources: points at powers of two."""
    rise, top = random.uniform(0.3, 1.0), random.choice((64, 256, most))
    return curve((n, 1e8 * min(n, top) ** rise) for n in {*(1 << k for k in range(11)), most} if n <= most)


def systems(many: int) -> dict[str, tuple[tuple[Application, ...], Resources]]:
    found: dict[str, tuple[tuple[Application, ...], Resources]] = {}
    kinds: tuple[Kind, ...] = ("io-node", "ost")
    for kind in kinds:
        resources = Resources(kind, many, 24 * many)
        for load in LOADS:
            found[f"{kind}s, load {load}"] = (
                generate(curve_sets.generated(kind), many, load, 1, resources).applications,
                resources,
            )
    random = Random(1)
    resources = Resources("ost", many, 24 * many)
    curves = [wide(random, many) for _ in range(100)]
    for load in (0.02, 0.3):
        found[f"curves up to {many}, load {load}"] = (
            generate(curves, many, load, 1, resources).applications,
            resources,
        )
    return found


def measure(short: bool) -> list[Figure]:
    figures = []
    for what, (applications, resources) in systems(100 if short else MANY).items():
        for name in POLICIES:
            began = time.process_time()
            schedulers.named(name).schedule(applications, resources)
            took_s = time.process_time() - began
            most = None if "up to" in what else MOST_S
            figures.append(Figure(f"{name}, {what}", took_s, "CPU s", most=most))
    return figures
