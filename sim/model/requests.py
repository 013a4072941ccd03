"""What requests cost beside their bytes: of the process, the disk, the router, the lock of an object, the MDS.

Only on a cluster with `ClusterSpec.costs`; else bytes alone count. An operation stays one flow: what each of its
requests costs is spread over its bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tarazu.sim.kernel.network import Network
from tarazu.sim.model.links import Direction, Floats, Links, Numbers
from tarazu.sim.model.spec import RequestCosts


class Requests(NamedTuple):
    """The requests of one operation."""

    rpc_bytes: Floats
    """(objects,) mean bytes of one RPC to each."""
    per_byte_s: float
    """Of the process: the time of its calls."""
    lock_links: Links
    """(objects,) or none: the locks that pass from node to node."""
    lock_s: Floats
    """(objects,) seconds of them for all bytes there."""


def requests(
    costs: RequestCosts, sizes: Numbers, call_bytes: int, stripe_bytes: int, gaps: bool
) -> tuple[Floats, float]:
    """(objects,) bytes of an RPC, and the process's seconds a byte; call_bytes: of one call, 0: all in one.

    Without gaps the client's cache makes full RPCs of the calls, whatever their size; with gaps an RPC holds no more
    than a call, nor than a stripe.
    """
    calls = float(call_bytes or sizes.sum())
    most = min(costs.rpc_bytes, calls, stripe_bytes) if gaps else costs.rpc_bytes
    return np.minimum(sizes, most).astype(np.float64), costs.call_s / calls


class Locks:
    """One link for the lock of each object of a file that several nodes write: 1 s of handing over a second."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._links: dict[tuple[int, int, int], int] = {}

    def links(self, file: int, component: int, osts: Numbers) -> Links:
        found = []
        for ost in osts.tolist():
            key = (file, component, ost)
            if key not in self._links:
                self._links[key] = self._network.link(1.0, f"lock of file {file} on OST {ost}")
            found.append(self._links[key])
        return np.array(found, np.int64)


def conflicts(direction: Direction, writer_nodes: int) -> bool:
    """Readers share locks; a single node keeps them."""
    return direction is Direction.WRITE and writer_nodes > 1
