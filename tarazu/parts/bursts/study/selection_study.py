"""What node selection gives and costs, on a queue replayed once for each policy, as it would be at a site: what is
known of an application is what its jobs have done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from tarazu.parts.bursts.measures.applications import ApplicationCharacter, of_jobs
from tarazu.parts.bursts.measures.characteristics import Character, of_nodes
from tarazu.parts.bursts.measures.published import HARDWARE, Name
from tarazu.parts.bursts.nodes.selection import Left, SelectionOptions, Wish, choose, loads
from tarazu.parts.bursts.nodes.slurm_fit import Flags, Indices
from tarazu.parts.bursts.study.generator import JOBS, SEED, queue
from tarazu.parts.bursts.study.io_time import NODES, SharedIoNodes, capacity
from tarazu.parts.bursts.study.knobs import KNOBS
from tarazu.parts.bursts.study.queue import Queue, shares
from tarazu.parts.bursts.study.replay import BACKFILL, Replayed, Slurms, replay
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Bytes
from tarazu.sim.kernel.fluid import Floats, Ints

GROWTH = 1.25
"""An application is looked at again when so many times the jobs have ended as at the last time."""


class SelectorPolicy(msgspec.Struct, frozen=True):
    """Of a replay."""

    name: str
    options: SelectionOptions | None
    """None: Slurm's own choice always."""
    even_node: bool = False
    """What is known of an application's traffic on its nodes is not used (S 6.4.1)."""
    loads: bool = False
    """Where data-intensive jobs run is known: I/O nodes that serve fewer of them come first."""


OWN = SelectorPolicy("Slurm's own (topology/tree)", None)
RECOMMENDED = SelectorPolicy("even traffic, span, loads known", SelectionOptions(), loads=True)
"""What tarazu-burstd does."""
POLICIES = (
    OWN,
    SelectorPolicy("even node, span", SelectionOptions(), even_node=True),
    SelectorPolicy("even traffic, span", SelectionOptions()),
    RECOMMENDED,
)


class Learned:
    """Characters of applications by the jobs of them that have ended."""

    def __init__(self, queue: Queue, parts: Sequence[Floats]) -> None:
        self._queue, self._parts = queue, parts
        count = len(queue.applications)
        self._characters: list[list[Character]] = [[] for _ in range(count)]
        self._moved: list[list[Bytes]] = [[] for _ in range(count)]
        self._due = [6.0] * count
        self._found: list[ApplicationCharacter | None] = [None] * count

    def ended(self, job: int) -> None:
        queue, at = self._queue, int(self._queue.application[job])
        moved = np.rint(self._parts[job] * queue.volume[job]).astype(np.int64)
        self._characters[at].append(of_nodes(moved, None, int(queue.network[job])))
        self._moved[at].append(moved)
        known = len(self._moved[at])
        if known >= self._due[at]:
            self._found[at] = of_jobs(self._characters[at], self._moved[at])
            self._due[at] = GROWTH * known

    def of(self, job: int) -> ApplicationCharacter | None:
        """Of its application; None: too few of its jobs have ended."""
        return self._found[int(self._queue.application[job])]

    def optimizable(self, job: int) -> bool:
        character = self.of(job)
        return character is not None and character.optimizable


class Chosen:
    """Nodes for optimizable jobs by `tarazu.parts.bursts.nodes`, Slurm's own choice for others."""

    def __init__(
        self, machine: Machine, queue: Queue, parts: Sequence[Floats], policy: SelectorPolicy
    ) -> None:
        self._machine, self._queue, self._policy = machine, queue, policy
        self._learned = Learned(queue, parts)
        self._slurms = Slurms(machine, queue.size)
        self._asked: dict[int, Floats] = {}
        """Of running data-intensive jobs, (I/O nodes,): the part of each that they are expected to carry."""
        self._load = np.zeros(len(machine.io_nodes))
        self.chosen = np.zeros(len(queue), dtype=np.bool_)
        """(jobs,): its nodes are not Slurm's own choice."""
        self.optimizable = np.zeros(len(queue), dtype=np.bool_)
        """(jobs,): known to be, when it started."""

    def nodes(self, idle: Flags, job: int, waiting: Sequence[int]) -> Indices:
        allocation = self._choose(idle, job, waiting) if self._policy.options else None
        if allocation is None:
            allocation = self._slurms.nodes(idle, job, waiting)
        if self._policy.loads:
            self._expect(job, allocation)
        return allocation

    def ended(self, job: int) -> None:
        self._learned.ended(job)
        asked = self._asked.pop(job, None)
        if asked is not None:
            self._load = np.maximum(self._load - asked, 0.0)

    def _choose(self, idle: Flags, job: int, waiting: Sequence[int]) -> Indices | None:
        options, known = self._policy.options, self._learned.of(job)
        if options is None or known is None or not self._learned.optimizable(job):
            return None
        self.optimizable[job] = True
        if known.nodes < 2 * options.per_io_node:
            return None
        following = next((j for j in waiting[:BACKFILL] if self._learned.optimizable(j)), None)
        size = None if following is None else int(self._queue.size[following])
        load = self._load if self._policy.loads else None
        wish = Wish(known.nodes, None if self._policy.even_node else known.shares, size)
        choice = choose(self._machine, idle, wish, options, load)
        if isinstance(choice, Left):
            return None
        self.chosen[job] = True
        return np.array(choice.nodes, dtype=np.int64)

    def _expect(self, job: int, nodes: Indices) -> None:
        known = self._learned.of(job)
        if known is not None and known.intensive.expected:
            self._asked[job] = loads(self._machine, nodes, known.shares)
            self._load += self._asked[job]


HEADERS = (
    "policy",
    "placed",
    "I/O time",
    "of placed",
    "I/O nodes",
    "waiting",
    "fewest cabinets",
)
LEGEND = (
    "placed: jobs whose nodes are not Slurm's own choice, of those known to be optimizable as they started",
    "I/O time: hours of all data-intensive jobs; of placed: of the placed jobs, beside the same jobs by Slurm's choice",
    "I/O nodes: of a placed job, beside the same by Slurm's choice; waiting: mean of all jobs, and their median",
    "fewest cabinets: part of the multi-node jobs not placed that stand in as few as could hold them (fragmentation)",
)


class SelectionOutcome(msgspec.Struct, frozen=True):
    """Of one policy. `own_...`: of the same jobs (those that the policy placed), by Slurm's own choice."""

    policy: str
    chosen: int
    """Jobs whose nodes were not Slurm's own choice."""
    optimizable: int
    """Jobs known to be optimizable when they started."""
    io_hours: float
    """Of all data-intensive jobs, summed."""
    chosen_io_hours: float
    """Of the jobs that it placed."""
    own_io_hours: float
    wait_s: float
    """Mean of all jobs, from submission to start."""
    wait_median_s: float
    others_least_cabinets: float
    """Part of the multi-node jobs that it did not place that stand in as few cabinets as could hold them."""
    io_nodes: float
    """Of the placed jobs, mean."""
    own_io_nodes: float


class SelectionStudy(msgspec.Struct, frozen=True):
    system: str
    jobs: int
    nodes: int
    io_nodes: int
    outcomes: tuple[SelectionOutcome, ...]


def study(
    name: Name,
    jobs: int = JOBS,
    seed: int = SEED,
    policies: Sequence[SelectorPolicy] = POLICIES,
    nodes: float = NODES,
    progress: Callable[[str], None] = lambda _: None,
) -> SelectionStudy:
    """Each policy on the same queue. `nodes`: compute nodes that an I/O node carries (`study.io_time`)."""
    knobs = KNOBS[name]
    machine, jobs_ = HARDWARE[name].machine(), queue(name, jobs, seed)
    parts = [shares(jobs_, job) for job in range(len(jobs_))]
    carries = capacity(jobs_, nodes)
    logs = np.where(jobs_.intensive, knobs.intensive.log, knobs.others.log)
    base = _run(machine, jobs_, parts, OWN, carries, logs)
    outcomes = []
    for policy in policies:
        progress(f"{name}: {policy.name}")
        run = base if policy == OWN else _run(machine, jobs_, parts, policy, carries, logs)
        outcomes.append(_outcome(machine, jobs_, policy, run, base))
    return SelectionStudy(name, jobs, len(machine.nodes), len(machine.io_nodes), tuple(outcomes))


class _Run(msgspec.Struct, frozen=True):
    replayed: Replayed
    io: SharedIoNodes
    select: Chosen


def _run(
    machine: Machine,
    jobs: Queue,
    parts: Sequence[Floats],
    policy: SelectorPolicy,
    carries: float,
    logs: Floats,
) -> _Run:
    select = Chosen(machine, jobs, parts, policy)
    io = SharedIoNodes(machine, jobs, parts, carries, logs)
    return _Run(replay(machine, jobs, select, io), io, select)


def _outcome(
    machine: Machine, jobs: Queue, policy: SelectorPolicy, run: _Run, base: _Run
) -> SelectionOutcome:
    some, multi = jobs.intensive, jobs.size > 1
    chosen = run.select.chosen
    at = np.flatnonzero(chosen)
    cabinets = np.array([len(np.unique(machine.cabinet[n])) for n in run.replayed.nodes])
    least = _least(machine, jobs)
    wait_s = run.replayed.start_s - jobs.submit_s
    return SelectionOutcome(
        policy.name,
        len(at),
        int(run.select.optimizable.sum()),
        float(run.io.io_s[some].sum()) / 3600,
        float(run.io.io_s[chosen].sum()) / 3600,
        float(base.io.io_s[chosen].sum()) / 3600,
        float(wait_s.mean()),
        float(np.median(wait_s)),
        float((cabinets == least)[multi & ~chosen].mean()),
        _mean([_io_nodes(machine, run.replayed.nodes[j]) for j in at]),
        _mean([_io_nodes(machine, base.replayed.nodes[j]) for j in at]),
    )


def _io_nodes(machine: Machine, nodes: Indices) -> float:
    return float(len(np.unique(machine.served_by[nodes])))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _least(machine: Machine, jobs: Queue) -> Ints:
    """(jobs,): in how few cabinets of the empty machine each would have room."""
    room = np.cumsum(np.sort(np.bincount(machine.cabinet))[::-1])
    cabinets: Ints = np.searchsorted(room, jobs.size) + 1
    return cabinets


def rows(outcomes: Sequence[SelectionOutcome]) -> list[tuple[str, ...]]:
    """Cells of each row, as `HEADERS` has them."""
    return [_row(outcome) for outcome in outcomes]


def _row(o: SelectionOutcome) -> tuple[str, ...]:
    placed = o.chosen > 0
    return (
        o.policy,
        f"{o.chosen} of {o.optimizable}" if o.optimizable else "-",
        f"{o.io_hours:.0f} h",
        f"{o.chosen_io_hours:.0f} / {o.own_io_hours:.0f} h" if placed else "-",
        f"{o.io_nodes:.1f} / {o.own_io_nodes:.1f}" if placed else "-",
        f"{o.wait_s / 60:.0f} / {o.wait_median_s / 60:.0f} min",
        f"{o.others_least_cabinets:.1%}",
    )
