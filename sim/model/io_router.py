"""Compute nodes and the I/O routers between them and the storage network (paper, figure 15): links, full duplex."""

from __future__ import annotations

import math

import numpy as np

from tarazu.errors import BadInput
from tarazu.sim.kernel.network import Network
from tarazu.sim.model.links import Direction, Links, pair
from tarazu.sim.model.spec import ClusterSpec


class IoRouters:
    """By which of them a node sends and receives: `ClusterSpec.io_router_of`."""

    def __init__(self, network: Network, spec: ClusterSpec) -> None:
        self._spec = spec
        self._nics = pair(network, spec.nodes, spec.nic_bytes_per_s, "NIC of node")
        self._routers = pair(network, spec.io_router_count, spec.io_router_bytes_per_s, "I/O router")

    def check(self, job: str, last_node: int) -> None:
        """Raises BadInput for a job on more nodes than there are, where these have links that could hold it back."""
        limited = min(self._spec.nic_bytes_per_s, self._spec.io_router_bytes_per_s) < math.inf
        if limited and last_node >= self._spec.nodes:
            raise BadInput(f"job {job}", f"nodes 0 to {self._spec.nodes - 1} of {self._spec.name}", last_node)

    def links(self, node: int, direction: Direction) -> Links:
        """The links that all bytes of a node go over; nodes beyond the last one begin anew."""
        node %= self._spec.nodes
        found = []
        if self._nics is not None:
            found.append(self._nics[direction][node])
        if self._routers is not None:
            found.append(self._routers[direction][self._router_of(node)])
        return np.array(found, np.int64)

    def _router_of(self, node: int) -> int:
        count = self._spec.io_router_count
        return node % count if self._spec.io_router_of == "cyclic" else node * count // self._spec.nodes
