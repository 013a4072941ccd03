"""Characteristic values of many applications at once, as arrays (paper A, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.curve import Curve

Array = np.ndarray[Any, Any]


@dataclass(slots=True, frozen=True)
class Table:
    """Of K applications with 1 … M resources; column n − 1 is for n.

    M is the largest number that makes a difference: beyond their last points curves are level.
    """

    nodes: Array
    """(K,) Q_j."""
    cpu_s: Array
    """(K,) T_cpu."""
    bandwidth: Array
    """(K, M) bytes a second."""
    io_s: Array
    """(K, M) T_cf_io."""
    stress: Array
    """(K, M) I/O-Stress."""
    cpu_load: Array
    """(K, M) CPULoad."""
    n_perf: Array
    """(K,)"""
    n_sys: Array
    """(K,)"""

    @property
    def most(self) -> int:
        return int(self.bandwidth.shape[1])


def table(applications: Sequence[Application], resources: Resources) -> Table:
    """The table of applications that share these resources. Raises ValueError where there is none of either."""
    check(applications, resources)
    most = max(min(resources.count, a.curve.points[-1].resources) for a in applications)
    nodes = np.array([a.nodes for a in applications], float)
    cpu_s = np.array([a.cpu_s for a in applications], float)
    volume = np.array([a.io_bytes for a in applications], float)
    bandwidth = np.array([bandwidths(a.curve, most) for a in applications])
    io_s = volume[:, None] / bandwidth
    whole = cpu_s[:, None] + io_s
    idle = whole == 0
    whole = np.where(idle, 1.0, whole)
    stress = np.where(idle, 0.0, np.arange(1, most + 1) * io_s / whole)
    cpu_load = np.where(idle, 0.0, (nodes * cpu_s)[:, None] / whole)
    n_perf = bandwidth.argmax(axis=1) + 1
    n_sys = stress.argmin(axis=1) + 1
    return Table(nodes, cpu_s, bandwidth, io_s, stress, cpu_load, n_perf, n_sys)


def check(applications: Sequence[Application], resources: Resources) -> None:
    """Raises ValueError where nothing can be shared out."""
    if not applications or resources.count < 1:
        raise ValueError(
            f"expected applications and resources, found {len(applications)} and {resources.count}"
        )


def bandwidths(curve: Curve, most: int) -> Array:
    """(most,) what `Curve.bandwidth` gives for 1 … most, bit by bit."""
    at = np.array([p.resources for p in curve.points])
    value = np.array([p.median for p in curve.points])
    n = np.arange(1, most + 1)
    right = np.minimum(np.searchsorted(at, n), len(at) - 1)
    left = np.maximum(right - 1, 0)
    exact = (n <= at[0]) | (n >= at[-1]) | (at[right] == n)
    width = np.where(exact, 1, at[right] - at[left])
    between: Array = value[left] + (n - at[left]) / width * (value[right] - value[left])
    return np.where(exact, value[right], between)
