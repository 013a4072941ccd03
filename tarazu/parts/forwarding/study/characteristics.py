"""Characteristic values of one application (paper A, section 3); `tarazu.parts.forwarding.tables` has those of many."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.parts.forwarding.application import Application, Resources, io_s


def n_perf(application: Application, most: int) -> int:
    """Equation 1: the number of 1 … most at which its I/O takes the least time; of equal ones the least."""
    return max(range(1, most + 1), key=application.curve.bandwidth)


def n_sys(application: Application, most: int) -> int:
    """Equation 2: the number of 1 … most at which its stress is the least; of equal ones the least."""
    return min(range(1, most + 1), key=lambda n: io_stress(application, n))


def io_stress(application: Application, resources: int) -> float:
    """I/O-Stress: resources that it keeps busy, on average over its time without congestion."""
    busy = io_s(application, resources)
    whole = application.cpu_s + busy
    return resources * busy / whole if whole else 0.0


def io_load(applications: Sequence[Application], counts: Sequence[int], resources: Resources) -> float:
    """I/O-load (equation 3) of a schedule: above 1 the system is saturated."""
    return sum(map(io_stress, applications, counts)) / resources.count


def cpu_load(application: Application, resources: int) -> float:
    """CPULoad: compute nodes that it keeps computing, on average over its time without congestion."""
    whole = application.cpu_s + io_s(application, resources)
    return application.nodes * application.cpu_s / whole if whole else 0.0
