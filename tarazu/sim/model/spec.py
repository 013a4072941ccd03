"""What is simulated, as data: the cluster, the jobs on it, and what fails. Physical quantities, named."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from tarazu.sim.workloads.workload import Workload


class ServiceCurve(msgspec.Struct, frozen=True, omit_defaults=True):
    """How fast an OST serves n streams of one direction: peak / (1 + interference (n - 1)) in all, at most
    `stream_bytes_per_s` for each."""

    peak_bytes_per_s: float
    stream_bytes_per_s: float = math.inf
    """What one stream alone can get: one client's RPCs in flight over their latency."""
    interference: float = 0.0
    """Loss by each further stream at once: seeks of a rotating disk. 0 for flash."""


class RequestCosts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What each request costs beside its bytes: what makes small ones slow. `sim/model/requests.py`."""

    rpc_bytes: int = 4 << 20
    """The most that one RPC to an OST holds (`max_pages_per_rpc`)."""
    call_s: float = 0.0
    """Of the process: each call of read or write."""
    disk_s: float = 0.0
    """Of an OST's disk: each RPC."""
    router_s: float = 0.0
    """Of an LNet router: each RPC."""
    lock_s: float = 0.0
    """Of an object that several nodes write: its lock's way from one to another, once for an operation without gaps,
    else for each RPC that is no neighbour of one of the same node."""
    object_s: float = 0.0
    """Of the MDS: each object of a file that is created."""


class ClusterSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cluster: links are full duplex, an OST's disk serves reads and writes by shares of its time."""

    name: str
    osts: int
    osts_per_oss: int
    ost_bytes: int
    write: ServiceCurve
    read: ServiceCurve
    oss_link_bytes_per_s: float = math.inf
    lnet_routers: int = 1
    """OSS s is reached by LNet router s % lnet_routers; 0: as many as OSSs."""
    lnet_router_bytes_per_s: float = math.inf
    io_routers: int = 1
    """Between nodes and LNet routers; 0: as many as OSSs."""
    io_router_bytes_per_s: float = math.inf
    io_router_of: Literal["block", "cyclic"] = "block"
    """Node n's I/O router: n * io_routers // nodes, neighbours share one, or n % io_routers, they do not."""
    nodes: int = 1
    """Compute nodes; jobs get them in order."""
    nic_bytes_per_s: float = math.inf
    create_s: float = 0.0
    """MDS time of one create or open."""
    mds_threads: int = 1
    """Creates and opens that the MDS works on at once."""
    cpu_bytes_per_s: float = math.inf
    """Bytes/s that keep all CPUs of an OSS busy."""
    used: tuple[float, ...] = ()
    """Used share of each OST at the start, repeated as often as needed; empty: all are empty."""
    speeds: tuple[float, ...] = ()
    """Each OST's speed over that of the curves, repeated as often as needed; empty: 1."""
    costs: RequestCosts | None = None
    """What requests cost; None: nothing, bytes alone count."""

    @property
    def osses(self) -> int:
        return -(-self.osts // self.osts_per_oss)

    @property
    def lnet_router_count(self) -> int:
        return self.lnet_routers or self.osses

    @property
    def io_router_count(self) -> int:
        return self.io_routers or self.osses


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """From `at_s` to `until_s` an OST serves at `speed` times what it did; 0: not at all, and it is inactive."""

    ost: int
    at_s: float
    speed: float
    until_s: float = math.inf


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """One workload on the cluster."""

    workload: Workload
    striping: str = "plain"
    """Layout rule of the files that have no layout of their own: a name of `tarazu.sim.model.striping`."""
    start_s: float = 0.0
    first_node: int = 0
    background: bool = False
    """Other users' traffic: placed by Lustre's allocator whatever the policy, and not waited for."""
