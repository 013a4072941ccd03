"""What node selection gives and costs, on a queue replayed once for each policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from tarazu.parts.bursts.measures.published import HARDWARE, Name
from tarazu.parts.bursts.nodes.slurm_fit import Indices
from tarazu.parts.bursts.study.generator import JOBS, SEED, queue
from tarazu.parts.bursts.study.io_time import NODES, SharedIoNodes, capacity
from tarazu.parts.bursts.study.knobs import KNOBS
from tarazu.parts.bursts.study.queue import Queue, shares
from tarazu.parts.bursts.study.replay import Replayed, replay
from tarazu.parts.bursts.study.selectors import OWN, POLICIES, Chosen, SelectorPolicy
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.sim.kernel.fluid import Floats, Ints

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
    io_node_bytes_per_s: float
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
    return SelectionStudy(name, jobs, len(machine.nodes), len(machine.io_nodes), carries, tuple(outcomes))


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
