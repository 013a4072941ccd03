"""Benchmarks and applications on a simulated cluster: what fills a benchmark database without a machine.

Resources are either OSTs (the stripe count of every file) or I/O nodes (LNet routers in front of the OSSs). A curve has
the shape that follows from the model: objects that work at once, streams that disturb one another at a disk, links,
and what requests cost beside their bytes (`RequestCosts`). Repetitions differ by what each OST gives and by where
Lustre's allocator begins; the rest of the machine takes a part of the bandwidth, another one each time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import get_context
from typing import TypeVar

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.estimate.database import BenchmarkPattern, Measurement
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Job, RequestCosts, ServiceCurve
from tarazu.sim.workloads import ior
from tarazu.sim.workloads.workload import Workload
from tarazu.trace.phases.phase import Operation

Task = TypeVar("Task")
Result = TypeVar("Result")

MB = 10**6
NUMBERS = tuple(range(1, 9))
REPETITIONS = 3
RANKS_PER_NODE = 4
OPERATIONS = 4
"""A rank's strided blocks are played as so many operations."""
OST_NOISE, RUN_NOISE = 0.05, 0.03
"""Standard deviation of the logarithm of an OST's speed, and of what others leave of the bandwidth, in one run."""

SITE = ClusterSpec(
    name="benchmarks",
    osts=8,
    osts_per_oss=2,
    ost_bytes=10**13,
    write=ServiceCurve(peak_bytes_per_s=600 * MB, stream_bytes_per_s=250 * MB, interference=0.02),
    read=ServiceCurve(peak_bytes_per_s=800 * MB, stream_bytes_per_s=350 * MB, interference=0.03),
    oss_link_bytes_per_s=2500 * MB,
    lnet_routers=0,
    nodes=32,
    nic_bytes_per_s=1200 * MB,
    create_s=0.3e-3,
    costs=RequestCosts(call_s=20e-6, disk_s=0.2e-3, router_s=10e-6, lock_s=0.5e-3, object_s=0.1e-3),
)
"""8 OSTs of 600 MB/s on 4 OSSs, 32 nodes. Assumed throughout: a stream's share, 2 or 3 % lost by each further one, and
the orders of magnitude of what requests cost: 20 µs a call, 0.2 ms of a disk and 10 µs of a router an RPC, 0.5 ms for a
lock's way, 0.1 ms an object created."""
ROUTER_BYTES_PER_S = 900 * MB
"""Of one LNet router, where these are the resources."""
STRIPES = {"shared": 8, "unique": 1}
"""Stripe counts where routers are the resources."""


def workload(pattern: BenchmarkPattern, name: str = "benchmark") -> Workload:
    """The IOR run that is this pattern. Raises BadInput for what IOR refuses."""
    strided = pattern.spatiality == "sequential"
    collective = pattern.spatiality == "collective"
    block = pattern.request_bytes if strided else pattern.process_bytes
    return ior.workload(
        ranks=pattern.processes,
        block_bytes=block,
        segments=pattern.process_bytes // block,
        transfer_bytes=pattern.request_bytes,
        interface="POSIX" if pattern.api == "POSIX" else "MPIIO",
        collective=collective,
        shared=pattern.sharing == "shared",
        write=pattern.operation == "write",
        read=pattern.operation == "read",
        ranks_per_node=-(-pattern.processes // pattern.nodes),
        operations=OPERATIONS,
        name=name,
    )


def playable(pattern: BenchmarkPattern) -> tuple[BenchmarkPattern, ...]:
    """What an IOR run of this pattern measures: its writes, and its reads if it reads. Empty for what cannot be
    simulated."""
    if pattern.spatiality == "random":
        return ()
    kinds: tuple[Operation, ...] = ("write", "read") if pattern.operation == "read" else ("write",)
    return tuple(msgspec.structs.replace(pattern, operation=kind) for kind in kinds)


def seed_of(*what: object) -> int:
    """The same for the same, whatever Python's hashes are."""
    return int(digest_of(*what)[:8], 16)


def digest_of(*what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:20]


def cluster(kind: Kind, resources: int, speeds: tuple[float, ...], nodes: int) -> ClusterSpec:
    """The site as it is during one run; with as many nodes as that needs."""
    nodes = max(nodes, SITE.nodes)
    if kind == "ost":
        return msgspec.structs.replace(SITE, speeds=speeds, nodes=nodes)
    return msgspec.structs.replace(
        SITE, speeds=speeds, nodes=nodes, lnet_routers=resources, lnet_router_bytes_per_s=ROUTER_BYTES_PER_S
    )


def striping(kind: Kind, resources: int, shared: bool) -> str:
    count = resources if kind == "ost" else STRIPES["shared" if shared else "unique"]
    return f"-c {count} -S 1M"


def seconds(
    works: Sequence[tuple[Workload, bool]], kind: Kind, resources: int, seed: int, quiet: bool = False
) -> list[float]:
    """How long each of these takes, one after the other on one machine as it is in one run; with each whether all its
    ranks share a file. quiet: OSTs are alike, and nobody else is there."""
    rng = np.random.default_rng(seed)
    nodes = max(work.nodes for work, _ in works)
    noise = 0.0 if quiet else 1.0
    speeds = tuple(np.exp(noise * rng.normal(0.0, OST_NOISE, SITE.osts)).tolist())
    left = float(np.exp(noise * rng.normal(0.0, RUN_NOISE)))
    simulation = Simulation(cluster(kind, resources, speeds, nodes), "lsa", seed)
    taken = []
    for work, shared in works:
        (outcome,) = simulation.run([Job(work, striping(kind, resources, shared))]).jobs
        taken.append((outcome.end_s - outcome.start_s) / left)
    return taken


def one(task: tuple[BenchmarkPattern, int, int]) -> Measurement:
    """One repetition: (pattern, resources, which)."""
    pattern, resources, repetition = task
    named = ("benchmark", msgspec.structs.astuple(pattern), resources, repetition)
    works = [(workload(pattern), pattern.sharing == "shared")]
    (taken,) = seconds(works, pattern.kind, resources, seed_of(*named))
    return Measurement(pattern, resources, pattern.bytes / taken, "simulator", "", digest_of(*named))


def measure(
    patterns: Iterable[BenchmarkPattern],
    numbers: Sequence[int] = NUMBERS,
    repetitions: int = REPETITIONS,
    progress: Callable[[str], object] = lambda text: None,
    jobs: int | None = None,
) -> list[Measurement]:
    """Every pattern with every number of resources, so many times."""
    tasks = [(p, n, r) for p in patterns for n in numbers for r in range(repetitions)]
    measurements = []
    for at, measured in enumerate(spread_out(one, tasks, jobs), 1):
        measurements.append(measured)
        progress(f"{at} of {len(tasks)} simulated benchmark runs")
    return measurements


def spread_out(
    call: Callable[[Task], Result], tasks: Sequence[Task], jobs: int | None = None
) -> Iterator[Result]:
    """The results in order, by as many processes as there are processors (1: by this one)."""
    count = jobs or len(os.sched_getaffinity(0))
    if count == 1:
        yield from map(call, tasks)
        return
    with get_context("spawn").Pool(count) as pool:
        yield from pool.imap(call, tasks, chunksize=8)
