"""OSSs: their links, and the load that their OSTs' traffic makes (paper, section 6.2)."""

from __future__ import annotations

import math

import numpy as np

from tarazu.sim.kernel.network import Network
from tarazu.sim.model.links import Direction, Floats, Links, Numbers, pair
from tarazu.sim.model.spec import ClusterSpec


class Osses:
    """OST j belongs to OSS j // osts_per_oss."""

    def __init__(self, network: Network, spec: ClusterSpec) -> None:
        self.count = spec.osses
        self.names = [f"oss{s + 1}" for s in range(spec.osses)]
        self.of_ost: Numbers = np.arange(spec.osts, dtype=np.int64) // spec.osts_per_oss
        self._cpu_bytes_per_s = spec.cpu_bytes_per_s
        self._link_bytes_per_s = spec.oss_link_bytes_per_s
        self._links = pair(network, spec.osses, spec.oss_link_bytes_per_s, "link of OSS")

    def links(self, osses: Numbers, direction: Direction) -> Links:
        """The link of each of these OSSs; empty where links limit nothing."""
        return self._links[direction][osses] if self._links is not None else osses[:0]

    def sums(self, by_ost: Floats) -> Floats:
        """(servers,) of what each OST has."""
        totals: Floats = np.bincount(self.of_ost, by_ost, self.count).astype(np.float64)
        return totals

    def cpu_s(self, moved: Floats) -> Floats:
        """Time in which all CPUs are busy with so many bytes, of each server; for bytes/s: the share that is busy."""
        return moved / self._cpu_bytes_per_s

    def cpu_load(self, moved_bytes_per_s: Floats) -> Floats:
        """Busy share of the CPUs at these rates of all OSTs together, as the server would tell it: at most 1."""
        return np.minimum(1.0, self.cpu_s(moved_bytes_per_s))

    def lnet_load(self, moved_bytes_per_s: Floats) -> Floats:
        """Share of the link, both directions together."""
        if math.isinf(self._link_bytes_per_s):
            return np.zeros(self.count)
        return np.minimum(1.0, moved_bytes_per_s / (2 * self._link_bytes_per_s))
