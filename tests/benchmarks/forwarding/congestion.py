"""The model of congestion beside the simulation: both metrics, for several policies at rising load."""

from __future__ import annotations

from statistics import fmean

import numpy as np

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.joint.congestion import Modelled, system
from tarazu.parts.forwarding.study import curve_sets, schedulers, workload
from tarazu.parts.forwarding.study.metrics import measure as simulate
from tarazu.parts.forwarding.study.workload import Set, resources
from tests.benchmarks.figure import Figure

POLICIES = ("bba-gnc", "bba-randp", "ta-gnc", "nsysa-gc", "static-gc", "joint")
LOADS = (0.1, 0.3, 0.6, 0.9)
SIMULATED_S = 20_000.0
SETS = 4


def measure(short: bool) -> list[Figure]:
    figures = []
    kinds: tuple[Kind, ...] = ("io-node", "ost")
    for kind in kinds:
        curves = curve_sets.generated(kind)
        for load in LOADS:
            sets = workload.sets_at(load, curves, kind, 1 if short else SETS)
            off = np.array(
                [np.mean([beside(one, kind, name) for one in sets], axis=0) - 1 for name in POLICIES]
            )
            for what, worst in zip(("Mean-I/O-SlowDown", "Machine-Idletime"), abs(off).max(axis=0).tolist()):
                figures.append(Figure(f"{kind}s, load {load}: {what} off, worst policy", 100 * worst, "%"))
    figures.append(Figure("mean of these", fmean(f.value for f in figures), "%"))
    return figures


def beside(one: Set, kind: Kind, name: str) -> tuple[float, float]:
    """Modelled by simulated, of both metrics."""
    among = resources(kind)
    schedule = schedulers.named(name).schedule(one.applications, among)
    seen = simulate(one.applications, schedule, among, horizon_s=SIMULATED_S)
    said = Modelled(system(one.applications, among), [np.array(p) for p in schedule.placed])
    return said.mean_slowdown / seen.mean_slowdown, said.idletime / seen.idletime
