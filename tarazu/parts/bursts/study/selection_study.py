"""What node selection gives and costs, on a queue replayed once for each policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from tarazu.parts.bursts.measures.measures import how_many
from tarazu.parts.bursts.measures.published import HARDWARE, Name
from tarazu.parts.bursts.nodes.slurm_fit import Flags, Indices
from tarazu.parts.bursts.study.generator import JOBS, SEED, queue
from tarazu.parts.bursts.study.io_time import NODES, SharedIoNodes, capacity
from tarazu.parts.bursts.study.knobs import KNOBS
from tarazu.parts.bursts.study.queue import Queue
from tarazu.parts.bursts.study.replay import Replayed, replay
from tarazu.parts.bursts.study.selectors import OWN, POLICIES, Chosen, SelectorPolicy
from tarazu.parts.bursts.study.shares import shares
from tarazu.parts.bursts.study.traffic import logged
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.sim.kernel.fluid import Floats, Ints

INTERVAL_S = 10.0
CHUNK = 8640
"""Intervals that are looked at together."""
BUSIEST = 0.1
WARM_S = 12 * 3600.0
"""Before, jobs still stand as they were put onto an empty machine."""
NEAR, FAR = 2.0, 4.0
"""Links between two nodes of one cabinet (leaf switch), and of two, in a tree of two levels."""


class SelectionOutcome(msgspec.Struct, frozen=True):
    """Of one policy. `own_...`: of the same jobs (those that the policy placed), by Slurm's own choice."""

    policy: str
    chosen: int
    """Jobs whose nodes were not Slurm's own choice."""
    optimizable: int
    """Jobs known to be optimizable when they started."""
    busiest: float
    """Part of the traffic of the busiest tenth of the I/O nodes, mean of 10-second intervals (S 7.4.1)."""
    busiest_by_bytes: float
    """The same, each byte counting alike."""
    io_hours: float
    """Of all data-intensive jobs, summed."""
    slowdown: float
    """Of their I/O, over what it would take were I/O nodes never asked for too much; each job's bytes count."""
    chosen_io_hours: float
    """Of the jobs that it placed."""
    own_io_hours: float
    alone_hours: float
    """The same were no other job doing I/O."""
    own_alone_hours: float
    """On the nodes that Slurm would have given it at that moment."""
    wait_s: float
    """Mean of all jobs, from submission to start."""
    wait_median_s: float
    last_end_days: float
    least_cabinets: float
    """Part of the multi-node jobs that stand in as few cabinets as could hold them."""
    others_least_cabinets: float
    """Of those that it did not place."""
    fragmented: float
    """Of idle nodes, those in cabinets that are not empty (mean over the starts of jobs)."""
    io_nodes: float
    """Of the placed jobs, mean."""
    own_io_nodes: float
    hops: float
    """Links between two nodes of one of the placed jobs, mean."""
    own_hops: float
    network_hops: float
    """Links that a byte goes between nodes of the same job, mean of all jobs' bytes."""


class SelectionStudy(msgspec.Struct, frozen=True):
    system: str
    jobs: int
    nodes: int
    io_nodes: int
    io_node_bytes_per_s: float
    outcomes: tuple[SelectionOutcome, ...]


def study(
    name: Name,
    jobs: int = JOBS,
    seed: int = SEED,
    policies: Sequence[SelectorPolicy] = POLICIES,
    nodes: float = NODES,
    progress: Callable[[str, int, int], None] | None = None,
) -> SelectionStudy:
    """Each policy on the same queue. `nodes`: compute nodes that an I/O node carries (`study.io_time`).
    `progress` hears a policy's name, and how many of how many jobs have ended."""
    knobs = KNOBS[name]
    machine, jobs_ = HARDWARE[name].machine(), queue(name, jobs, seed)
    parts = [shares(jobs_, job) for job in range(len(jobs_))]
    carries = capacity(jobs_, nodes)
    logs = np.where(jobs_.intensive, knobs.intensive.log, knobs.others.log)
    base = _run(machine, jobs_, parts, OWN, carries, logs, progress)
    outcomes = []
    for policy in policies:
        run = base if policy == OWN else _run(machine, jobs_, parts, policy, carries, logs, progress)
        busiest = _busiest(machine, jobs_, parts, logs, run)
        outcomes.append(_outcome(machine, jobs_, policy, run, base, busiest))
    return SelectionStudy(name, jobs, len(machine.nodes), len(machine.io_nodes), carries, tuple(outcomes))


class _Watched(Chosen):
    """Keeps how fragmented idle nodes are."""

    def __init__(
        self, machine: Machine, jobs: Queue, parts: Sequence[Floats], policy: SelectorPolicy
    ) -> None:
        super().__init__(machine, jobs, parts, policy)
        self._cabinet = machine.cabinet
        self._sizes = np.bincount(machine.cabinet, minlength=len(machine.cabinets))
        self.fragmented: list[float] = []

    def nodes(self, idle: Flags, job: int, waiting: Sequence[int]) -> Indices:
        allocation = super().nodes(idle, job, waiting)
        left = idle.copy()
        left[allocation] = False
        free = np.bincount(self._cabinet[left], minlength=len(self._sizes))
        total = int(free.sum())
        if total:
            self.fragmented.append(1 - int(free[free == self._sizes].sum()) / total)
        return allocation


class _Run(msgspec.Struct, frozen=True):
    replayed: Replayed
    io: SharedIoNodes
    select: _Watched


def _run(
    machine: Machine,
    jobs: Queue,
    parts: Sequence[Floats],
    policy: SelectorPolicy,
    carries: float,
    logs: Floats,
    progress: Callable[[str, int, int], None] | None,
) -> _Run:
    select = _Watched(machine, jobs, parts, policy)
    io = SharedIoNodes(machine, jobs, parts, carries, logs)
    hear = None if progress is None else lambda ended: progress(policy.name, ended, len(jobs))
    return _Run(replay(machine, jobs, select, io, hear), io, select)


def _outcome(
    machine: Machine, jobs: Queue, policy: SelectorPolicy, run: _Run, base: _Run, busiest: tuple[float, float]
) -> SelectionOutcome:
    some, multi = jobs.intensive, jobs.size > 1
    chosen = run.select.chosen
    at = np.flatnonzero(chosen)
    cabinets = np.array([len(np.unique(machine.cabinet[n])) for n in run.replayed.nodes])
    least = _least(machine, jobs)
    wait_s = run.replayed.start_s - jobs.submit_s
    weight = jobs.volume[some]
    every = np.flatnonzero(multi)
    apart = np.array([hops(machine, run.replayed.nodes[j]) for j in every])
    return SelectionOutcome(
        policy.name,
        len(at),
        int(run.select.optimizable.sum()),
        *busiest,
        float(run.io.io_s[some].sum()) / 3600,
        float((weight * run.io.io_s[some] / jobs.io_s[some]).sum() / weight.sum()),
        float(run.io.io_s[chosen].sum()) / 3600,
        float(base.io.io_s[chosen].sum()) / 3600,
        sum(run.io.alone_s(j, run.replayed.nodes[j]) for j in at.tolist()) / 3600,
        sum(run.io.alone_s(j, run.select.instead_of[j]) for j in at.tolist()) / 3600,
        float(wait_s.mean()),
        float(np.median(wait_s)),
        float(run.replayed.end_s.max()) / 86400,
        float((cabinets == least)[multi].mean()),
        float((cabinets == least)[multi & ~chosen].mean()),
        float(np.mean(run.select.fragmented)),
        _mean([_io_nodes(machine, run.replayed.nodes[j]) for j in at]),
        _mean([_io_nodes(machine, base.replayed.nodes[j]) for j in at]),
        _mean([hops(machine, run.replayed.nodes[j]) for j in at]),
        _mean([hops(machine, base.replayed.nodes[j]) for j in at]),
        float((apart * jobs.network[every]).sum() / jobs.network[every].sum()),
    )


def hops(machine: Machine, nodes: Indices) -> float:
    """Links between two different nodes of a job, mean of all pairs, in a tree of two levels; 0 of a single node."""
    count = len(nodes)
    if count < 2:
        return 0.0
    alike = np.bincount(machine.cabinet[nodes]).astype(np.float64)
    near = float((alike * (alike - 1)).sum()) / (count * (count - 1))
    return NEAR * near + FAR * (1 - near)


def _io_nodes(machine: Machine, nodes: Indices) -> float:
    return float(len(np.unique(machine.served_by[nodes])))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _least(machine: Machine, jobs: Queue) -> Ints:
    """(jobs,): in how few cabinets of the empty machine each would have room."""
    room = np.cumsum(np.sort(np.bincount(machine.cabinet))[::-1])
    cabinets: Ints = np.searchsorted(room, jobs.size) + 1
    return cabinets


def _busiest(
    machine: Machine, jobs: Queue, parts: Sequence[Floats], logs: Floats, run: _Run
) -> tuple[float, float]:
    """Mean over intervals with traffic, and over bytes; when the machine is warm, as long as jobs are submitted."""
    top, total, share, intervals = 0.0, 0.0, 0.0, 0
    begin, until = (int(at_s / INTERVAL_S) for at_s in _steady_s(jobs))
    for first in range(begin, until, CHUNK):
        edges = np.arange(first, min(first + CHUNK, until) + 1, dtype=np.float64) * INTERVAL_S
        moved = run.io.traffic(edges) + _logged(machine, jobs, parts, logs, run.replayed, edges)
        most = how_many(len(moved), BUSIEST)
        sums = moved.sum(axis=0)
        largest = np.partition(moved, len(moved) - most, axis=0)[len(moved) - most :].sum(axis=0)
        some = sums >= 1
        share += float((largest[some] / sums[some]).sum())
        intervals += int(some.sum())
        top += float(largest[some].sum())
        total += float(sums[some].sum())
    return share / max(1, intervals), top / max(1.0, total)


def _steady_s(jobs: Queue) -> tuple[float, float]:
    last_s = float(jobs.submit_s[-1])
    return min(WARM_S, last_s / 3), last_s


def _logged(
    machine: Machine, jobs: Queue, parts: Sequence[Floats], logs: Floats, replayed: Replayed, edges: Floats
) -> Floats:
    """(I/O nodes, intervals): bytes that jobs write between their phases."""
    moved = np.zeros((len(machine.io_nodes), len(edges) - 1))
    starts, ends = replayed.start_s, replayed.end_s
    for job in np.flatnonzero((starts < edges[-1]) & (ends > edges[0]) & (logs > 0)).tolist():
        first = max(0, int((starts[job] - edges[0]) / INTERVAL_S))
        last = min(len(edges) - 1, int((ends[job] - edges[0]) / INTERVAL_S) + 1)
        after_s = edges[first : last + 1] - starts[job]
        bytes_ = np.diff(logged(after_s, float(ends[job] - starts[job]))) * float(
            logs[job] * jobs.volume[job]
        )
        some = np.flatnonzero(bytes_) + first
        at = machine.served_by[replayed.nodes[job]]
        part = np.bincount(at, parts[job], len(moved))
        through = np.flatnonzero(part)
        moved[np.ix_(through, some)] += part[through, None] * bytes_[some - first]
    return moved
