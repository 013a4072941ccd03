"""Compute nodes, the cabinets in which they stand, and the I/O nodes (LNet routers) that serve them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tarazu.errors import BadInput
from tarazu.parts.bursts.traffic.traffic import Numbers


@dataclass(frozen=True, eq=False)
class Machine:
    """Nodes are in the order of the batch system: neighbours stand beside one another."""

    nodes: tuple[str, ...]
    cabinets: tuple[str, ...]
    """Or frames, or leaf switches: what is near one another, and what the batch system fills first."""
    io_nodes: tuple[str, ...]
    cabinet: Numbers
    """(nodes,): index into `cabinets`."""
    served_by: Numbers
    """(nodes,): index into `io_nodes`; -1 where none is known."""

    def __post_init__(self) -> None:
        count = len(self.nodes)
        if len(set(self.nodes)) != count:
            raise BadInput("machine", "each node once", "one twice")
        for what, index, names in (
            ("cabinet", self.cabinet, self.cabinets),
            ("served_by", self.served_by, self.io_nodes),
        ):
            if index.shape != (count,):
                raise BadInput(f"machine: {what}", f"{count} numbers", str(index.shape))
            if count and not -1 <= int(index.min()) <= int(index.max()) < len(names):
                raise BadInput(f"machine: {what}", f"numbers from -1 to {len(names) - 1}", "others")


def regular(nodes: int, per_cabinet: int, *, name: str = "n") -> Machine:
    """Cabinets of `per_cabinet` nodes, each with an I/O node of its own (spatially-bursty-io, 2.1)."""
    cabinets = -(-nodes // per_cabinet)
    at = (np.arange(nodes) // per_cabinet).astype(np.int32)
    digits = len(str(max(0, nodes - 1)))
    return Machine(
        tuple(f"{name}{i:0{digits}}" for i in range(nodes)),
        tuple(f"c{i}" for i in range(cabinets)),
        tuple(f"io{i}" for i in range(cabinets)),
        at,
        at.copy(),
    )
