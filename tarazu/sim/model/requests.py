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
from tarazu.sim.workloads.workload import OperationKind, Workload


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


class Asking:
    """The requests of one job's operations."""

    def __init__(self, costs: RequestCosts, network: Network, workload: Workload) -> None:
        self._costs, self._network = costs, network
        self._ranks_per_node = workload.ranks_per_node
        self._locks: dict[tuple[int, int, int], int] = {}
        """(file, component, OST) → a link: 1 s of handing over the object's lock a second."""
        operations = workload.operations
        writes = operations[operations["kind"] == OperationKind.WRITE]
        nodes = writes["rank"].astype(np.int64) // workload.ranks_per_node
        pairs = np.unique(np.stack([writes["file"].astype(np.int64), nodes]), axis=1)
        self._writer_nodes = np.bincount(pairs[0], minlength=len(workload.files))

    def requests(
        self,
        file: int,
        component: int,
        stripe_bytes: int,
        osts: Numbers,
        sizes: Numbers,
        direction: Direction,
        call_bytes: int,
        gaps: bool,
    ) -> Requests:
        """Those of one operation on objects of one component of a file; call_bytes: of one call, 0: all in one.

        Without gaps the client's cache makes full RPCs of the calls, whatever their size; with gaps an RPC holds no
        more than a call, nor than a stripe.
        """
        costs = self._costs
        calls = float(call_bytes or sizes.sum())
        most = min(costs.rpc_bytes, calls, stripe_bytes) if gaps else costs.rpc_bytes
        rpc_bytes = np.minimum(sizes, most).astype(np.float64)
        locks, lock_s = osts[:0], rpc_bytes[:0]
        # Readers share locks, and a single node keeps them.
        if costs.lock_s and direction is Direction.WRITE and self._writer_nodes[file] > 1:
            rpcs = sizes / rpc_bytes / self._ranks_per_node if gaps else np.zeros(len(osts))
            locks, lock_s = self._links(file, component, osts), costs.lock_s * np.maximum(1.0, rpcs)
        return Requests(rpc_bytes, costs.call_s / calls, locks, lock_s)

    def _links(self, file: int, component: int, osts: Numbers) -> Links:
        links = []
        for ost in osts.tolist():
            key = (file, component, ost)
            if key not in self._locks:
                self._locks[key] = self._network.link(1.0, f"lock of file {file} on OST {ost}")
            links.append(self._locks[key])
        return np.array(links, np.int64)
