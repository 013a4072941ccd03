"""Applications, the resources that they share, and policies, which say who gets how many and which (paper A)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from tarazu.parts.forwarding.curve import Curve

Kind = Literal["io-node", "ost"]
Need = Literal["nodes", "volume", "cpu", "n_perf", "curve"]
"""What a policy has to know of an application (paper A, table 2): Q_j, V_io, T_cpu, n_perf, b_j."""


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


def io_share(application: Application, resources: int) -> float:
    """Share of its time that an application is in I/O without congestion: its stress on each of its resources."""
    busy = io_s(application, resources)
    whole = application.cpu_s + busy
    return busy / whole if whole else 0.0


class Schedule(msgspec.Struct, frozen=True):
    """Which resources each application gets, in the order of the applications."""

    placed: tuple[tuple[int, ...], ...]
    """Different indices of 0 … N − 1, at least one an application."""

    @property
    def counts(self) -> tuple[int, ...]:
        """π."""
        return tuple(map(len, self.placed))


class Scheduler(Protocol):
    """A policy: how many resources each application gets (allocation) and which (placement)."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> frozenset[Need]: ...

    def schedule(self, applications: Sequence[Application], resources: Resources) -> Schedule: ...
