"""An application as the allocation of I/O resources sees it (paper A, section 3)."""

from __future__ import annotations

from typing import Literal

import msgspec

from tarazu.parts.forwarding.curve import Curve

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


def io_share(application: Application, resources: int) -> float:
    """Share of its time that an application is in I/O without congestion: its stress on each of its resources."""
    busy = io_s(application, resources)
    whole = application.cpu_s + busy
    return busy / whole if whole else 0.0
