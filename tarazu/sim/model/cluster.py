"""The simulated file system: its components, the way of bytes through them, and the names of its files."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import simpy

from tarazu.daemons.mdsd.limits import MAX_TARGETS
from tarazu.errors import BadInput
from tarazu.sim.kernel.network import Network
from tarazu.sim.model.client import Client
from tarazu.sim.model.links import Direction, Links, Numbers, pair
from tarazu.sim.model.mds import Mds, PlacedFile
from tarazu.sim.model.mdsd import SimulatedMdsd
from tarazu.sim.model.oss import Osses
from tarazu.sim.model.ost import Osts
from tarazu.sim.model.planner import Planner
from tarazu.sim.model.publisher import Publisher
from tarazu.sim.model.requests import Requests
from tarazu.sim.model.spec import ClusterSpec, Failure
from tarazu.wire import messages


class LnetRouters:
    """OSS s is reached by LNet router s % their number."""

    def __init__(self, network: Network, spec: ClusterSpec) -> None:
        self._count = spec.lnet_router_count
        self._links = pair(network, self._count, spec.lnet_router_bytes_per_s, "LNet router")

    def links(self, osses: Numbers, direction: Direction) -> Links:
        """The link to each of these OSSs; empty where routers limit nothing."""
        return self._links[direction][osses % self._count] if self._links is not None else osses[:0]


class IoRouters:
    """Those between compute nodes and the storage network (paper, figure 15): links, full duplex.

    By which of them a node sends and receives: `ClusterSpec.io_router_of`.
    """

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
        route = []
        if self._nics is not None:
            route.append(self._nics[direction][node])
        if self._routers is not None:
            route.append(self._routers[direction][self._router_of(node)])
        return np.array(route, np.int64)

    def _router_of(self, node: int) -> int:
        count = self._spec.io_router_count
        return node % count if self._spec.io_router_of == "cyclic" else node * count // self._spec.nodes


class Named(NamedTuple):
    """A file that is there."""

    file: PlacedFile
    owner: Hashable
    """The job that made it."""


class Cluster:
    """All that the jobs of a simulation share."""

    def __init__(
        self,
        spec: ClusterSpec,
        policy: str,
        seed: int,
        failures: Sequence[Failure],
        resolution_s: float,
        statistics_s: float | None,
    ) -> None:
        """Raises ConfigError for a policy that is not there, BadInput for a cluster or failure that cannot be."""
        _check(spec)
        if statistics_s is not None and not 0 < statistics_s < math.inf:
            raise BadInput("statistics", "an interval above 0 s", statistics_s)
        if statistics_s is not None and spec.osts > MAX_TARGETS:
            raise BadInput("statistics", f"at most {MAX_TARGETS} OSTs, which mdsd takes in", spec.osts)
        if not 0 <= resolution_s < math.inf:
            raise BadInput("resolution_s", "a number of seconds, 0 or more", resolution_s)
        self.spec = spec
        self.env = simpy.Environment()
        self.network = Network(self.env, resolution_s)
        self.io_routers = IoRouters(self.network, spec)
        self.lnet_routers = LnetRouters(self.network, spec)
        self.osses = Osses(self.network, spec)
        self.osts = Osts(self.env, self.network, spec)
        self.mds = Mds(self.env, self.osts, self.osses.names, seed)
        self.planner = Planner(self.osts, self.osses, policy if statistics_s is None else "lsa", seed)
        self.publisher: Publisher | None = None
        self.client: Client | None = None
        """Who plans where statistics are published; None: the planner does, or nobody."""
        if statistics_s is not None:
            self._follow(policy, seed, statistics_s)
        for failure in failures:
            self.osts.fails(failure)
        self.names: dict[str, Named] = {}
        self.running: set[Hashable] = set()
        """Jobs that have begun and not ended."""
        self.run_start_s = 0.0
        self._moving = [0, 0]
        self._since = [0.0, 0.0]
        self.moving_s = [0.0, 0.0]
        """Of this run: time in which at least one write, or read, was under way that is waited for."""

    def _follow(self, policy: str, seed: int, interval_s: float) -> None:
        self.mdsd = SimulatedMdsd(policy, seed, interval_s)
        self.publisher = Publisher(self.osts, self.osses, interval_s)
        if policy != "lsa":
            self.client = Client(self.mdsd, self.osts.active)

    def publish(self) -> None:
        """All OSSs send what they counted."""
        if self.publisher:
            reports = self.publisher.reports(self.env.now)
            self.mdsd.take_in(map(messages.encode, reports), self.env.now)

    def flow(
        self, node: int, osts: Numbers, sizes: Numbers, direction: Direction, asked: Requests | None = None
    ) -> simpy.Event:
        """One node's bytes to or from these (distinct) OSTs, all at once: succeeds when the last has arrived.

        The flow's unit is a byte of its largest object: so objects, not operations, have equal parts of a disk or link,
        as their RPCs do, and a file over c OSTs is c times as fast as one of a stripe beside it. asked: where requests
        cost something.
        """
        largest = int(sizes.max())
        shares = sizes / largest
        servers = self.osses.of_ost[osts]
        costs = self.spec.costs if asked else None
        disk_s = costs.disk_s / asked.rpc_bytes if costs and asked else 0.0
        own, weights, streams, limit = self.osts.links(osts, shares, direction, disk_s)
        by_node = self.io_routers.links(node, direction)
        routers = self.lnet_routers.links(servers, direction)
        links = self.osses.links(servers, direction)
        used = np.concatenate([own, by_node, routers, links])
        whole = np.full(len(by_node), float(shares.sum()))
        by_router = shares[: len(routers)]
        if costs and asked and len(routers):
            by_router = shares * (1 + costs.router_s * self.spec.lnet_router_bytes_per_s / asked.rpc_bytes)
        parts = [weights, whole, by_router, shares[: len(links)]]
        if asked:
            used = np.concatenate([used, asked.lock_links])
            parts.append(asked.lock_s / largest)
            if asked.per_byte_s:
                limit = 1 / (1 / limit + asked.per_byte_s * float(shares.sum()))
        count = np.ones(len(used), np.int64)
        count[: len(streams)] = streams
        return self.network.start(used, np.concatenate(parts), largest, limit, count)

    def put(self, key: str, file: PlacedFile, owner: Hashable) -> None:
        """A new file of that name: one of a job that has ended is removed first, and its space is free."""
        old = self.names.get(key)
        if old is not None and old.owner not in self.running:
            self.remove(key)
        self.names[key] = Named(file, owner)

    def remove(self, key: str) -> None:
        """Delete a file; its space is free. A name that is not there is left alone."""
        old = self.names.pop(key, None)
        if old is not None:
            for osts, sizes in old.file.space:
                self.osts.occupy(osts, -sizes)

    def begins(self, direction: Direction) -> None:
        """An operation that is waited for is under way."""
        if not self._moving[direction]:
            self._since[direction] = self.env.now
        self._moving[direction] += 1

    def ends(self, direction: Direction) -> None:
        self._moving[direction] -= 1
        if not self._moving[direction]:
            self.moving_s[direction] += self.env.now - self._since[direction]


def _check(spec: ClusterSpec) -> None:
    """Raises BadInput for a cluster that cannot be."""
    where = f"cluster {spec.name}"
    for name in (
        "osts",
        "osts_per_oss",
        "ost_bytes",
        "lnet_router_count",
        "io_router_count",
        "nodes",
        "mds_threads",
    ):
        if getattr(spec, name) < 1:
            raise BadInput(where, f"{name} of 1 or more", getattr(spec, name))
    rates = {
        "write.peak_bytes_per_s": spec.write.peak_bytes_per_s,
        "read.peak_bytes_per_s": spec.read.peak_bytes_per_s,
        "write.stream_bytes_per_s": spec.write.stream_bytes_per_s,
        "read.stream_bytes_per_s": spec.read.stream_bytes_per_s,
        "oss_link_bytes_per_s": spec.oss_link_bytes_per_s,
        "lnet_router_bytes_per_s": spec.lnet_router_bytes_per_s,
        "io_router_bytes_per_s": spec.io_router_bytes_per_s,
        "nic_bytes_per_s": spec.nic_bytes_per_s,
        "cpu_bytes_per_s": spec.cpu_bytes_per_s,
    }
    for name, value in rates.items():
        if not value > 0:
            raise BadInput(where, f"{name} above 0", value)
    for name, values in (("used", spec.used), ("speeds", spec.speeds)):
        if any(not 0 <= v < math.inf for v in values) or (name == "used" and any(v > 1 for v in values)):
            raise BadInput(
                where, f"{name} of 0 or more" + (" and at most 1" if name == "used" else ""), values
            )
    times = {
        "write.interference": spec.write.interference,
        "read.interference": spec.read.interference,
        "create_s": spec.create_s,
    }
    for name, value in times.items():
        if not 0 <= value < math.inf:
            raise BadInput(where, f"{name} of 0 or more", value)
    if spec.costs:
        if spec.costs.rpc_bytes < 1:
            raise BadInput(where, "costs.rpc_bytes of 1 or more", spec.costs.rpc_bytes)
        for name in ("call_s", "disk_s", "router_s", "lock_s", "object_s"):
            value = getattr(spec.costs, name)
            if not 0 <= value < math.inf:
                raise BadInput(where, f"costs.{name} of 0 or more", value)
    if spec.speeds and not any(spec.speeds[: spec.osts]):
        raise BadInput(where, "an OST with a speed above 0", spec.speeds)
    if math.isinf(max(spec.write.peak_bytes_per_s, spec.read.peak_bytes_per_s)):
        raise BadInput(where, "a finite peak of reads and writes")
