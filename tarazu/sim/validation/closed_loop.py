"""The closed loop: runs of one application whose sizes drift, an OST that becomes slow and recovers, and other jobs.

Lustre's allocator, and tarazu by statistics at an interval and forecasts from the runs before, on the same cluster
with the same background traffic. The application begins a run every `period_s`, its files made anew each time.
Beside each completion stands a time that no placement of these files can beat: that of the OSTs at their true speeds,
or of the links where that is longer, as if nobody else were there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import msgspec
import numpy as np

from tarazu.allocate import bounds
from tarazu.model import CreateRequest, Layout
from tarazu.sim.model import presets, striping
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Failure, Job
from tarazu.sim.model.view import view_of
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow
from tarazu.sim.workloads.workload import OPERATION, File, OperationKind, Workload
from tarazu.units import MIB

RUNS, RANKS = 10, 16
SLOW_OST, SLOW_SPEED = 7, 0.1
SLOW_FROM, SLOW_UNTIL = 4, 8
"""It is slow in runs 4 to 7, and well again in run 8."""
PERIOD_S = 900.0
FIRST_BYTES, GROWTH, SPREAD = 1200 * MIB, 1.05, 0.03
"""Size of a file in the first run, its growth from run to run, and how far files differ from it."""
NOTICE_S = 30.0
"""The OST changes so long before a run begins."""
POLICIES = ("lsa", "tarazu")
SEEDS, SHORT_RUNS = 5, 5
LUSTRE = "Lustre's allocator in the same loop"
BOUND = "no placement of these files ends earlier"


class PolicyRun(msgspec.Struct, frozen=True):
    """One run under one policy."""

    run: int
    """From 1."""
    policy: str
    seed: int
    bytes: int
    slow: bool
    """One OST is at a tenth of its speed."""
    completion_s: float
    bound_s: float
    ost_cost: float
    slow_ost_bytes: int
    """What this run put on that OST."""
    believed_speed: float
    """Of that OST over its peers', as mdsd's view had it when the run began; 1: nothing is known against it."""
    forecast_error: float
    """Median of |forecast - size| / size over the planned files; 0 where nothing was planned."""
    unplanned: int
    """Files that Lustre's allocator placed."""


def application(run: int, seed: int) -> Workload:
    """A file per process, written from its beginning to its end; sizes drift from run to run and differ by rank."""
    random = np.random.default_rng([seed, run])
    even = FIRST_BYTES * GROWTH**run
    sizes = (even * (1 + random.uniform(-SPREAD, SPREAD, RANKS)) // MIB * MIB).astype(np.int64).tolist()
    rows = [
        (rank, rank, kind, 0.0, 0.0, 0, size * (kind == OperationKind.WRITE), size)
        for rank, size in enumerate(sizes)
        for kind in (OperationKind.CREATE, OperationKind.WRITE, OperationKind.CLOSE)
    ]
    files = tuple(File(f"/app/out.{rank:04d}", size) for rank, size in enumerate(sizes))
    return Workload("app", RANKS, 8, files, np.array(rows, OPERATION))


def others(osts: int, lasts_s: float, seed: int) -> Workload:
    """Other users: a small file on every OST or so, of which each writer writes 16 MiB anew every 10 to 20 s, and reads
    as much.
    """
    random = np.random.default_rng([seed, 1])
    size = 16 * MIB
    rows = []
    for rank in range(osts):
        rows.append((rank, rank, OperationKind.CREATE, float(random.uniform(0, 10)), 0.0, 0, 0, 0))
        for _ in range(int(lasts_s / 15 / 2)):
            for kind in (OperationKind.WRITE, OperationKind.READ):
                rows.append((rank, rank, kind, float(random.uniform(10, 20)), 0.0, 0, size, size))
    files = tuple(File(f"/others/{rank:04d}", size) for rank in range(osts))
    return Workload("others", osts, osts, files, np.array(rows, OPERATION))


def closed_loop(
    policy: str,
    seed: int = 0,
    *,
    cluster: ClusterSpec | None = None,
    rule: str = "plain",
    runs: int = RUNS,
    statistics_s: float = 60.0,
    period_s: float = PERIOD_S,
    traffic: bool = True,
    progress: Progress = lambda text: None,
) -> tuple[PolicyRun, ...]:
    """All runs under one policy, in order."""
    spec = cluster or presets.named("paper").spec
    slow = Failure(
        SLOW_OST, (SLOW_FROM - 1) * period_s - NOTICE_S, SLOW_SPEED, (SLOW_UNTIL - 1) * period_s - NOTICE_S
    )
    simulation = Simulation(spec, policy, seed, statistics_s=statistics_s, failures=[slow])
    policy_runs = []
    for run in range(runs):
        progress(f"closed loop, {policy}: run {run + 1} of {runs}")
        work = application(run, seed)
        jobs = [Job(work, rule, start_s=max(0.0, run * period_s - simulation.now))]
        if traffic and not run:
            jobs.append(Job(others(spec.osts, runs * period_s, seed), "-c 1 -S 1M", background=True))
        policy_runs.append(_run(simulation, run, jobs, work, rule))
    return tuple(policy_runs)


def _run(simulation: Simulation, run: int, jobs: Sequence[Job], work: Workload, rule: str) -> PolicyRun:
    outcome = simulation.run(jobs)
    cluster = simulation.cluster
    job = next(j for j in outcome.jobs if j.name == work.name)
    plan = simulation.plan_of(work.name)
    errors = plan.forecast_errors([f.size_bytes for f in work.files]) if plan else []
    view = view_of(cluster.osts, cluster.osses.names, simulation.now)
    return PolicyRun(
        run=run + 1,
        policy=simulation.policy,
        seed=simulation.seed,
        bytes=job.written_bytes,
        slow=cluster.osts.speed[SLOW_OST] < 1,
        completion_s=job.end_s - job.start_s,
        bound_s=max(
            bounds.time_bound(view, _requests(work, rule, cluster.spec.osts)), _links_s(cluster.spec, work)
        ),
        ost_cost=job.ost_cost,
        slow_ost_bytes=int(simulation.placed_by(work.name)[SLOW_OST]),
        believed_speed=plan.believed(SLOW_OST) if plan else 1.0,
        forecast_error=float(np.median(errors)) if errors else 0.0,
        unplanned=job.left_to_lustre,
    )


def _links_s(spec: ClusterSpec, work: Workload) -> float:
    """All its bytes over all links of the narrowest hop."""
    hops = (
        work.nodes * spec.nic_bytes_per_s,
        min(work.nodes, spec.io_router_count) * spec.io_router_bytes_per_s,
        spec.lnet_router_count * spec.lnet_router_bytes_per_s,
        spec.osses * spec.oss_link_bytes_per_s,
    )
    return work.moved_bytes(OperationKind.WRITE) / min(hops)


def _requests(work: Workload, rule: str, osts: int) -> list[CreateRequest]:
    sizes = [striping.Expected(file.size_bytes) for file in work.files]
    layouts: list[Layout] = striping.layouts(striping.rule(rule), sizes, osts)
    return [CreateRequest(s.size_bytes, layout) for s, layout in zip(sizes, layouts, strict=True)]


def every_run(seeds: Sequence[int] = (0,), progress: Progress = lambda text: None) -> tuple[PolicyRun, ...]:
    """Every policy with every seed."""
    return tuple(
        run for seed in seeds for policy in POLICIES for run in closed_loop(policy, seed, progress=progress)
    )


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[ValidationRow, ...]:
    """Completion of each run, median of the seeds: tarazu's beside that of Lustre's allocator, and the bound.

    Judged: nothing ends before its bound, and one run after an OST became slow tarazu waits no longer for it than
    Lustre's allocator does. The short form has five runs and no other users.
    """
    if full:
        runs = every_run(range(SEEDS), progress)
    else:
        runs = tuple(
            run for policy in POLICIES for run in closed_loop(policy, runs=SHORT_RUNS, traffic=False)
        )
    result: list[ValidationRow] = []
    for number in sorted({run.run for run in runs}):
        completion, bound = {}, 0.0
        for policy in POLICIES:
            these = [run for run in runs if run.policy == policy and run.run == number]
            completion[policy] = median(run.completion_s for run in these)
            bound = median(run.bound_s for run in these)
        lustre, ours = completion["lsa"], completion["tarazu"]
        slow = SLOW_FROM <= number < SLOW_UNTIL
        name = f"closed loop: run {number}" + (f", OST {SLOW_OST} slow" if slow else "")
        known = SLOW_FROM < number < SLOW_UNTIL
        limit = 0.0 if known else math.inf
        late = max(0.0, ours / lustre - 1) if known else ours / lustre - 1
        result.append(ValidationRow(f"{name}: tarazu", "completion, s", lustre, ours, late, limit, LUSTRE))
        early = max(0.0, bound / min(lustre, ours) - 1)
        result.append(
            ValidationRow(
                f"{name}: the faster of the two",
                "completion, s",
                bound,
                min(lustre, ours),
                early,
                1e-6,
                BOUND,
            )
        )
    return tuple(result)
