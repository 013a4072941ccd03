"""LNet routers in front of the OSSs (paper, section 6.2): links, full duplex."""

from __future__ import annotations

from tarazu.sim.kernel.network import Network
from tarazu.sim.model.links import Direction, Links, Numbers, pair
from tarazu.sim.model.spec import ClusterSpec


class LnetRouters:
    """OSS s is reached by LNet router s % their number."""

    def __init__(self, network: Network, spec: ClusterSpec) -> None:
        self._count = spec.lnet_router_count
        self._links = pair(network, self._count, spec.lnet_router_bytes_per_s, "LNet router")

    def links(self, osses: Numbers, direction: Direction) -> Links:
        """The link to each of these OSSs; empty where routers limit nothing."""
        return self._links[direction][osses % self._count] if self._links is not None else osses[:0]
