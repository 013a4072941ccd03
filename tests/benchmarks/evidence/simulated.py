"""Runs that are slow for planted causes, what mdsd would have seen meanwhile, and what each cause truly cost.

An application runs a dozen times on a simulated cluster whose OSTs differ a little and carry a little of others, then
once with one or two causes. The same run without them, and with each alone, says what each cost: with two, the mean
of what it adds to nothing and to the other (Shapley), as in `tarazu.parts.why.model`.

Statistics are those of the daemons: reports at an interval, the estimator's speed of each OST, verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu.layout.setstripe import parse_layout
from tarazu.model import SystemView
from tarazu.ost_state import Verdict
from tarazu.parts.why.facts import Kind, Run
from tarazu.sim.model.links import Direction, Floats
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Failure, Job, RequestCosts, ServiceCurve
from tarazu.sim.workloads import ior
from tarazu.sim.workloads.workload import Workload
from tarazu.then import JobThen, OstThen, ServerThen, System
from tarazu.units import GIB, MIB

MB = 10**6
DISK = ServiceCurve(peak_bytes_per_s=150 * MB, stream_bytes_per_s=150 * MB, interference=0.02)
CLUSTER = ClusterSpec(
    name="slow-runs",
    osts=24,
    osts_per_oss=4,
    ost_bytes=10**15,
    write=DISK,
    read=DISK,
    oss_link_bytes_per_s=700 * MB,
    nodes=32,
    create_s=0.3e-3,
    cpu_bytes_per_s=2000 * MB,
    costs=RequestCosts(call_s=20e-6, disk_s=0.2e-3, lock_s=0.5e-3, object_s=0.1e-3),
)
"""Assumed: six servers of four disks each, about the paper's disks (`sim presets`), and what requests cost as in
`sim.forwarding.benchmarks`."""
RANKS, RANKS_PER_NODE = 24, 4
INTERVAL_S = 5.0
SPEED_NOISE = 0.04
"""Standard deviation of the logarithm of an OST's speed, for good and in one run, each."""
LIGHT_OSTS, LIGHT_SHARE = 6, 0.15
"""Others that are usual: on no more OSTs, each with no more than this share of a rank's bytes."""
LEAST_USUAL, MOST_USUAL = 8, 20
LEAST_COST = 0.2
"""Of the run's time without it: causes of which one costs less are planted anew."""
TRIES = 30
FULL = 0.965
USUAL_CALL, OWN, OTHER, LIGHT = 4 * MIB, "app", "neighbour", "light"
APPLICATIONS = ("write", "read", "shared")
PLANTABLE = {
    "write": ("slow-ost", "busy-server", "same-osts", "full-ost", "imbalance", "small-calls"),
    "read": ("slow-ost", "busy-server", "same-osts", "full-ost", "imbalance", "small-calls"),
    "shared": ("slow-ost", "busy-server", "same-osts", "full-ost", "few-stripes", "small-calls"),
}
"""A file per process written, read; one file of all on all OSTs."""
KIND = {
    "slow-ost": Kind.SLOW_OST,
    "busy-server": Kind.OTHER_JOBS,
    "same-osts": Kind.OTHER_JOBS,
    "full-ost": Kind.FULL_OST,
    "imbalance": Kind.IMBALANCE,
    "few-stripes": Kind.FEW_STRIPES,
    "small-calls": Kind.SMALL_CALLS,
}
"""What `tarazu why` should call it."""


class Plan(NamedTuple):
    """A run as data."""

    application: str
    bytes: int
    seed: int
    """Of what differs from run to run anyhow."""
    osts: tuple[int, ...]
    """Of each rank's file; of a shared file, in order."""
    sizes: tuple[float, ...] = (1.0,) * RANKS
    """Each rank's bytes over the mean."""
    call_bytes: int = USUAL_CALL
    speeds: tuple[tuple[int, float], ...] = ()
    """(OST, how fast it is)"""
    full: tuple[int, ...] = ()
    crowds: tuple[tuple[int, int], ...] = ()
    """(OST, streams of others there, as long as the run takes)"""


class Case(NamedTuple):
    """One run to be explained."""

    planted: tuple[str, ...]
    run: Run
    earlier: tuple[Run, ...]
    without_s: float
    """The same run without any cause."""
    cost_s: dict[Kind, float]
    """True, of each kind that was planted."""


def case(application: str, planted: Sequence[str], seed: int) -> Case | None:
    """A run of that application with those causes (at most two), drawn by `seed`; None: none of them costs enough."""
    rng = np.random.default_rng([seed, APPLICATIONS.index(application)])
    size = int(rng.choice([24, 48, 96])) * GIB
    count = int(rng.integers(LEAST_USUAL, MOST_USUAL + 1))
    plain = _usual(application, size, 1000 * seed + 999)
    without_s = play(plain, seed, 1e6).io_s
    for attempt in range(TRIES):
        plans = {
            some: _planted(plain, some, (seed, attempt))
            for some in ((), *((cause,) for cause in planted), tuple(planted))
        }
        runs = {some: play(plan, seed, 1e6) for some, plan in plans.items() if some}
        if all(runs[(cause,)].io_s >= (1 + LEAST_COST) * without_s for cause in planted):
            break
    else:
        return None
    earlier = tuple(play(_usual(application, size, 1000 * seed + n), seed, float(n)) for n in range(count))
    if not planted:
        return Case((), play(plain, seed, 1e6), earlier, without_s, {})
    whole = runs[tuple(planted)]
    cost_s: dict[Kind, float] = {}
    for cause in planted:
        alone = runs[(cause,)].io_s - without_s
        added = whole.io_s - without_s - sum(runs[(o,)].io_s - without_s for o in planted if o != cause)
        cost_s[KIND[cause]] = cost_s.get(KIND[cause], 0.0) + (alone + added) / 2
    return Case(tuple(planted), whole, earlier, without_s, cost_s)


@lru_cache(maxsize=4)
def _earlier(application: str, size: int, seed: int, count: int) -> tuple[Run, ...]:
    return tuple(play(_usual(application, size, 1000 * seed + n), seed, float(n)) for n in range(count))


def _usual(application: str, size: int, seed: int) -> Plan:
    osts = np.random.default_rng(seed).permutation(CLUSTER.osts)
    return Plan(application, size, seed, tuple(int(ost) for ost in osts))


def _planted(plan: Plan, causes: Sequence[str], seed: tuple[int, int]) -> Plan:
    """With these, each drawn alike whatever the others are; those of the run's own files first."""
    order = list(_PLANT)
    for cause in sorted(causes, key=order.index):
        plan = _PLANT[cause](plan, np.random.default_rng([*seed, order.index(cause)]))
    return plan


def _imbalance(plan: Plan, rng: np.random.Generator) -> Plan:
    """One or two ranks have more, all the others less."""
    sizes = np.ones(RANKS)
    sizes[: rng.integers(1, 3)] = rng.uniform(1.5, 8.0)
    return plan._replace(sizes=tuple(sizes * RANKS / sizes.sum()))


def _few_stripes(plan: Plan, rng: np.random.Generator) -> Plan:
    return plan._replace(osts=plan.osts[: rng.integers(2, 17)])


def _small_calls(plan: Plan, rng: np.random.Generator) -> Plan:
    return plan._replace(call_bytes=2 ** int(rng.integers(8, 13)))


def _full_ost(plan: Plan, rng: np.random.Generator) -> Plan:
    """It is slow, or Lustre makes no objects there and the files lie elsewhere."""
    if plan.application == "write" and rng.uniform() < 0.5:
        full = plan.osts[4 : 4 + int(rng.integers(1, 4))]
        others = [ost for ost in plan.osts if ost not in full]
        moved = {ost: int(rng.choice(others)) for ost in full}
        return plan._replace(osts=tuple(moved.get(ost, ost) for ost in plan.osts), full=full)
    ost = plan.osts[int(rng.integers(0, 2))]
    return plan._replace(full=(ost,), speeds=(*plan.speeds, (ost, rng.uniform(0.15, 0.7))))


def _slow_ost(plan: Plan, rng: np.random.Generator) -> Plan:
    osts = plan.osts[: rng.integers(1, 3)]
    return plan._replace(
        speeds=(*plan.speeds, *((ost, rng.uniform(0.08, 0.6)) for ost in osts if ost not in plan.full))
    )


def _busy_server(plan: Plan, rng: np.random.Generator) -> Plan:
    """All OSTs of a server are written to by others."""
    first = plan.osts[int(rng.integers(0, 2))] // CLUSTER.osts_per_oss * CLUSTER.osts_per_oss
    streams = int(rng.integers(1, 9))
    return plan._replace(
        crowds=(*plan.crowds, *((ost, streams) for ost in range(first, first + CLUSTER.osts_per_oss)))
    )


def _same_osts(plan: Plan, rng: np.random.Generator) -> Plan:
    streams = int(rng.integers(1, 9))
    return plan._replace(crowds=(*plan.crowds, *((ost, streams) for ost in plan.osts[: rng.integers(1, 3)])))


_PLANT: dict[str, Callable[[Plan, np.random.Generator], Plan]] = {
    "imbalance": _imbalance,
    "few-stripes": _few_stripes,
    "small-calls": _small_calls,
    "full-ost": _full_ost,
    "slow-ost": _slow_ost,
    "busy-server": _busy_server,
    "same-osts": _same_osts,
}


def play(plan: Plan, cluster_seed: int, start_s: float) -> Run:
    """As it is told to `tarazu why`; where an OST is slow it was so for a run before."""
    rng = np.random.default_rng(plan.seed)
    speeds = np.exp(np.random.default_rng(cluster_seed).normal(0, SPEED_NOISE, CLUSTER.osts))
    speeds *= np.exp(rng.normal(0, SPEED_NOISE, CLUSTER.osts))
    used = rng.uniform(0.3, 0.6, CLUSTER.osts)
    used[list(plan.full)] = FULL
    spec = msgspec.structs.replace(CLUSTER, speeds=tuple(speeds.tolist()), used=tuple(used.tolist()))
    failures = [Failure(ost, 0.0, speed) for ost, speed in plan.speeds]
    simulation = Simulation(spec, "lsa", plan.seed, statistics_s=INTERVAL_S, failures=failures)
    own = Job(_workload(plan))
    if plan.speeds:
        simulation.run([own])
    seen = _Seen(simulation)
    crowd = [o for o, streams in plan.crowds for _ in range(streams)]
    light = rng.choice(CLUSTER.osts, 4, replace=False)
    jobs = [
        _others(OTHER, crowd, 20 * plan.bytes // RANKS, 8),
        _others(LIGHT, light.tolist(), plan.bytes // 400, 24),
    ]
    outcome = simulation.run([own, *(job for job in jobs if job is not None)])
    done = next(job for job in outcome.jobs if job.name == OWN)
    io_s = done.read_s if plan.application == "read" else done.write_s
    laid: dict[int, float] = {}
    for ost, share in _shares(plan):
        laid[ost] = laid.get(ost, 0.0) + float(share) * plan.bytes
    shared = plan.application == "shared"
    return Run(
        id=f"run{plan.seed}",
        start_s=start_s,
        io_s=io_s,
        bytes=float(plan.bytes),
        files=1 if shared else RANKS,
        ranks=RANKS,
        job_id=OWN,
        calls=plan.bytes / plan.call_bytes,
        largest_shared_bytes=float(plan.bytes) if shared else 0.0,
        shared_stripes=len(plan.osts) if shared else 0,
        usable_osts=CLUSTER.osts,
        ost_bytes=dict(sorted(laid.items())),
        system=seen.system(laid),
    )


def _shares(plan: Plan) -> list[tuple[int, float]]:
    """(OST, share of the bytes) of each file, or stripe."""
    if plan.application == "shared":
        return [(ost, 1 / len(plan.osts)) for ost in plan.osts]
    return [(ost, size / RANKS) for ost, size in zip(plan.osts, plan.sizes, strict=True)]


def _workload(plan: Plan) -> Workload:
    shared, write = plan.application == "shared", plan.application != "read"
    work = ior.workload(
        ranks=RANKS,
        block_bytes=plan.bytes // RANKS,
        transfer_bytes=plan.call_bytes,
        shared=shared,
        write=write,
        read=not write,
        ranks_per_node=RANKS_PER_NODE,
        name=OWN,
    )
    layout, _ = parse_layout(f"-c {len(plan.osts) if shared else 1} -S 1M")
    osts = [plan.osts] if shared else [(ost,) for ost in plan.osts]
    files = [
        msgspec.structs.replace(file, layout=layout, osts=(of,))
        for file, of in zip(work.files, osts, strict=True)
    ]
    operations = work.operations.copy()
    if not shared:
        sizes = [round(size * plan.bytes / RANKS) for size in plan.sizes]
        files = [msgspec.structs.replace(f, size_bytes=size) for f, size in zip(files, sizes, strict=True)]
        moves = operations["bytes"] > 0
        operations["bytes"][moves] = np.array(sizes)[operations["rank"][moves]]
        operations["span_bytes"][moves] = operations["bytes"][moves]
    return msgspec.structs.replace(work, files=tuple(files), operations=operations)


def _others(name: str, osts: Sequence[int], size: int, first_node: int) -> Job | None:
    """A stream to each of these OSTs, of that size."""
    if not osts:
        return None
    work = ior.workload(
        ranks=len(osts), block_bytes=size // MIB * MIB, read=False, ranks_per_node=RANKS_PER_NODE, name=name
    )
    layout, _ = parse_layout("-c 1 -S 1M")
    files = tuple(
        msgspec.structs.replace(file, layout=layout, osts=((ost,),))
        for file, ost in zip(work.files, osts, strict=True)
    )
    return Job(msgspec.structs.replace(work, files=files), first_node=first_node, background=True)


class _Seen:
    """What mdsd keeps of a run, from the reports that come while it runs (as `daemons.mdsd.record`)."""

    def __init__(self, simulation: Simulation) -> None:
        self._cluster = simulation.cluster
        self._begin_s = simulation.now
        self._views: list[SystemView] = []
        self._before = self._counts()
        publish = self._cluster.publish

        def and_look() -> None:
            publish()
            self._look()

        self._cluster.publish = and_look  # type: ignore[method-assign]

    def _look(self) -> None:
        self._views.append(self._cluster.mdsd.view(self._cluster.env.now))

    def _counts(self) -> tuple[Floats, Floats]:
        """(OSTs,) bytes moved, and seconds of I/Os, up to now."""
        osts, publisher = self._cluster.osts, self._cluster.publisher
        assert publisher is not None
        return osts.moved(Direction.WRITE) + osts.moved(Direction.READ), publisher.io_s()

    def system(self, own: Mapping[int, float]) -> System:
        """While the run went on that has just ended; `own`: its bytes on each OST."""
        seconds = self._cluster.env.now - self._begin_s
        moved, io_s = (now - then for now, then in zip(self._counts(), self._before, strict=True))
        self._look()
        osts = {}
        for j in range(CLUSTER.osts):
            past = [view.osts[j] for view in self._views]
            verdict = max((ost.verdict for ost in past), key=lambda v: v.weight)
            if j in own or verdict in (Verdict.NEARLY_FULL, Verdict.FULL):
                speeds = [ost.relative_speed for ost in past if ost.relative_speed is not None]
                osts[j] = OstThen(
                    past[-1].oss,
                    len(speeds) / sum(1 / max(speed, 1e-3) for speed in speeds) if speeds else None,
                    verdict,
                    float(moved[j]),
                    float(moved[j] / MIB),
                    float(io_s[j] / seconds),
                    past[-1].fill,
                    past[-1].peak_bytes_per_s,
                )
        servers = {}
        for number, oss in enumerate(self._views[-1].osses):
            mine = slice(number * CLUSTER.osts_per_oss, (number + 1) * CLUSTER.osts_per_oss)
            whole = float(moved[mine].sum())
            ours = float(sum(own.get(j, 0.0) for j in range(CLUSTER.osts)[mine]))
            jobs = [
                JobThen(name, size, size / MIB)
                for name, size in ((OWN, ours), (OTHER, whole - ours))
                if size > MIB
            ]
            load = min(1.0, whole / seconds / CLUSTER.cpu_bytes_per_s)
            servers[oss.name] = ServerThen(load, whole, CLUSTER.oss_link_bytes_per_s, tuple(jobs))
        return System(seconds, osts, servers, usable_osts=CLUSTER.osts)
