"""What node selection gives and costs, on a queue replayed once for each policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from tarazu.forwarding.bursts.measures import how_many
from tarazu.forwarding.nodes.slurm_fit import Flags, Indices
from tarazu.forwarding.traffic.machine import Machine
from tarazu.sim.bursts.generator import JOBS, SEED, queue
from tarazu.sim.bursts.io_time import NODES, SharedIoNodes, capacity
from tarazu.sim.bursts.published import HARDWARE, Name
from tarazu.sim.bursts.queue import Queue
from tarazu.sim.bursts.replay import Replayed, replay
from tarazu.sim.bursts.selectors import OWN, POLICIES, Chosen, Policy
from tarazu.sim.bursts.shares import shares
from tarazu.sim.kernel.fluid import Floats, Ints

INTERVAL_S = 10.0
CHUNK = 8640
"""Intervals that are looked at together."""
NEAR, FAR = 2.0, 4.0
"""Links between two nodes of one cabinet (leaf switch), and of two, in a tree of two levels."""


class Outcome(msgspec.Struct, frozen=True):
    """Of one policy. Of Slurm's own choice: the same jobs (those that the policy placed) there."""

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
    """Of the same jobs, by Slurm's own choice."""
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
    decision_ms: float
    """Longest processor time of choosing nodes for one job."""


class Study(msgspec.Struct, frozen=True):
    system: str
    jobs: int
    nodes: int
    io_nodes: int
    io_node_bytes_per_s: float
    outcomes: tuple[Outcome, ...]


def study(
    name: Name,
    jobs: int = JOBS,
    seed: int = SEED,
    policies: Sequence[Policy] = POLICIES,
    nodes: float = NODES,
    progress: Callable[[str, int, int], None] | None = None,
) -> Study:
    """Each policy on the same queue. `nodes`: compute nodes that an I/O node carries (tarazu.sim.bursts.io_time).
    `progress` hears a policy's name, and how many of how many jobs have ended."""
    machine, jobs_ = HARDWARE[name].machine(), queue(name, jobs, seed)
    parts = [shares(jobs_, job) for job in range(len(jobs_))]
    carries = capacity(jobs_, nodes)
    base = _run(machine, jobs_, parts, OWN, carries, progress)
    outcomes = []
    for policy in policies:
        run = base if policy == OWN else _run(machine, jobs_, parts, policy, carries, progress)
        outcomes.append(_outcome(machine, jobs_, policy, run, base))
    return Study(name, jobs, len(machine.nodes), len(machine.io_nodes), carries, tuple(outcomes))


class _Watched(Chosen):
    """Keeps how fragmented idle nodes are."""

    def __init__(self, machine: Machine, jobs: Queue, parts: Sequence[Floats], policy: Policy) -> None:
        super().__init__(machine, jobs, parts, policy)
        self._cabinet = machine.cabinet
        self._sizes = np.bincount(machine.cabinet, minlength=len(machine.cabinets))
        self.fragmented: list[float] = []

    def nodes(self, idle: Flags, job: int, waiting: Sequence[int]) -> Indices:
        found = super().nodes(idle, job, waiting)
        left = idle.copy()
        left[found] = False
        free = np.bincount(self._cabinet[left], minlength=len(self._sizes))
        total = int(free.sum())
        if total:
            self.fragmented.append(1 - int(free[free == self._sizes].sum()) / total)
        return found


class _Run(msgspec.Struct, frozen=True):
    replayed: Replayed
    io: SharedIoNodes
    select: _Watched


def _run(
    machine: Machine,
    jobs: Queue,
    parts: Sequence[Floats],
    policy: Policy,
    carries: float,
    progress: Callable[[str, int, int], None] | None,
) -> _Run:
    select = _Watched(machine, jobs, parts, policy)
    io = SharedIoNodes(machine, jobs, parts, carries)
    hear = None if progress is None else lambda ended: progress(policy.name, ended, len(jobs))
    return _Run(replay(machine, jobs, select, io, hear), io, select)


def _outcome(machine: Machine, jobs: Queue, policy: Policy, run: _Run, base: _Run) -> Outcome:
    some, multi = jobs.intensive, jobs.size > 1
    chosen = run.select.chosen
    at = np.flatnonzero(chosen)
    cabinets = np.array([len(np.unique(machine.cabinet[n])) for n in run.replayed.nodes])
    least = _least(machine, jobs)
    wait_s = run.replayed.start_s - jobs.submit_s
    busiest, by_bytes = _busiest(run.io, float(jobs.submit_s[-1]))
    weight = jobs.volume[some]
    every = np.flatnonzero(multi)
    apart = np.array([hops(machine, run.replayed.nodes[j]) for j in every])
    return Outcome(
        policy.name,
        len(at),
        int(run.select.optimizable.sum()),
        busiest,
        by_bytes,
        float(run.io.io_s[some].sum()) / 3600,
        float((weight * run.io.io_s[some] / jobs.io_s[some]).sum() / weight.sum()),
        float(run.io.io_s[chosen].sum()) / 3600,
        float(base.io.io_s[chosen].sum()) / 3600,
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
        run.select.longest_s * 1e3,
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
    found: Ints = np.searchsorted(room, jobs.size) + 1
    return found


def _busiest(io: SharedIoNodes, until_s: float) -> tuple[float, float]:
    """Mean over intervals with traffic, and over bytes; as long as jobs are submitted."""
    top, total, share, intervals = 0.0, 0.0, 0.0, 0
    for first in range(0, int(until_s / INTERVAL_S), CHUNK):
        moved = io.traffic(np.arange(first, first + CHUNK + 1, dtype=np.float64) * INTERVAL_S)
        most = how_many(len(moved), 0.1)
        sums = moved.sum(axis=0)
        largest = np.partition(moved, len(moved) - most, axis=0)[len(moved) - most :].sum(axis=0)
        some = sums >= 1
        share += float((largest[some] / sums[some]).sum())
        intervals += int(some.sum())
        top += float(largest[some].sum())
        total += float(sums[some].sum())
    return share / max(1, intervals), top / max(1.0, total)
