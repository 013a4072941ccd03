"""An application as the allocation of I/O resources sees it, and its characteristic values (paper A, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tarazu.forwarding.curve import Curve

Kind = Literal["io-node", "ost"]


class Resources(msgspec.Struct, frozen=True):
    """The I/O resources that are shared out: `count` (N) of one kind, and the compute nodes beside them."""

    kind: Kind
    count: int
    nodes: int
    """Compute nodes of the whole machine (Q^cpu)."""


class Application(msgspec.Struct, frozen=True):
    """One running application (table 1)."""

    name: str
    nodes: int
    """Compute nodes that it occupies (Q_j)."""
    curve: Curve
    cpu_s: float
    """Compute time of all its phases together (T_cpu)."""
    io_bytes: float
    """Bytes of all its I/O phases together (V_io)."""
    phases: int = 1
    """Times that it computes and then does I/O (p_j)."""


def io_s(application: Application, resources: int) -> float:
    """T_cf_io(n): seconds of I/O without congestion."""
    return application.io_bytes / application.curve.bandwidth(resources)


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
