"""One case on the simulated cluster: its jobs, its runs in a row, and the rows that come of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from tarazu.allocate.bounds import utilization_of
from tarazu.allocate.problem import build
from tarazu.errors import BadInput, InfeasibleRequest, InsufficientResources
from tarazu.model import CreateRequest
from tarazu.sim.model.application import SimulatedApplication
from tarazu.sim.model.outcome import Outcome
from tarazu.sim.model.simulation import Simulation, StandsStill
from tarazu.sim.model.spec import ClusterSpec, Job
from tarazu.sim.model.view import view_of
from tarazu.sim.study import workloads
from tarazu.sim.study.cases import ScenarioCase
from tarazu.sim.study.results import ScenarioRow
from tarazu.sim.study.scenario import JobTable, job_name, put
from tarazu.units import MIB

Progress = Callable[[float, float], object]


def rows(case: ScenarioCase, progress: Progress | None = None) -> list[ScenarioRow]:
    """A row for each run; one with `error` from the first run on that has no result. Raises BadInput."""
    simulation = Simulation(
        case.cluster,
        case.policy,
        case.seed,
        statistics_s=case.loop.statistics_s,
        failures=case.failures,
        resolution_s=case.resolution_s,
    )
    case_rows: list[ScenarioRow] = []
    for number in range(case.loop.runs):
        tables = _drifted(case, number)
        planned = [_jobs(case, table, index) for index, table in enumerate(tables)]
        jobs = _on_nodes(case, tables, planned)
        wait_s = max(0.0, number * case.loop.period_s - simulation.now)
        start_s = simulation.now + wait_s
        try:
            bound = _bound(case, number, jobs)
            outcome = simulation.run(
                [msgspec.structs.replace(j, start_s=j.start_s + wait_s) for j in jobs], progress
            )
        except (InsufficientResources, InfeasibleRequest, StandsStill) as error:
            case_rows += [_row(case, run, str(error)) for run in range(number, case.loop.runs)]
            break
        case_rows.append(_told(case, number, jobs, outcome, start_s, wait_s, bound))
    return case_rows


def _drifted(case: ScenarioCase, run: int) -> list[JobTable]:
    """The tables of this run: numbers under `drift` have grown."""
    if not run or not case.loop.drift:
        return list(case.jobs)
    raw: dict[str, Any] = {"jobs": [msgspec.structs.asdict(job) for job in case.jobs]}
    for key, factor in case.loop.drift.items():
        value = _at(raw, key)
        grown = value * factor**run
        raw = put(raw, f"jobs.{key}", _whole(value, grown) if isinstance(value, int) else grown, "loop.drift")
    return [msgspec.convert(table, JobTable) for table in raw["jobs"]]


def _whole(value: int, grown: float) -> int:
    """A size of whole MiB stays one, for block sizes must be multiples of others; likewise below, by powers of two."""
    unit = min(MIB, value & -value) or 1
    return max(unit, round(grown / unit) * unit)


def _at(raw: dict[str, Any], key: str) -> float:
    name, *words = key.split(".")
    value: Any = next((t for t in raw["jobs"] if name in (t.get("name"), t["workload"]["kind"])), None)
    for word in words:
        value = value.get(word) if isinstance(value, dict) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise BadInput(f"loop.drift.{key}", "a job's number that is given in its table", value)
    return value


def _jobs(case: ScenarioCase, table: JobTable, index: int) -> list[Job]:
    """The table as jobs, each from node 0 on."""
    made = []
    for part in workloads.make(table.workload, f"{case.scenario}: jobs[{index}].workload", case.seed):
        named = msgspec.structs.replace(part.workload, name=job_name(table) + part.suffix)
        made.append(
            Job(
                named,
                striping=table.layout or case.layout,
                start_s=table.start_s + part.after_s,
                background=table.background,
            )
        )
    return made


def _on_nodes(case: ScenarioCase, tables: Sequence[JobTable], planned: Sequence[Sequence[Job]]) -> list[Job]:
    placed: list[Job] = []
    node = 0
    for table, jobs in zip(tables, planned, strict=True):
        if table.first_node >= 0:
            node = table.first_node
        for job in jobs:
            placed.append(msgspec.structs.replace(job, first_node=node))
            node += job.workload.nodes
            if node > case.cluster.nodes:
                where = f"{case.scenario}: job {job.workload.name}"
                raise BadInput(
                    where, f"nodes below cluster.nodes = {case.cluster.nodes}", f"up to {node - 1}"
                )
    return placed


def _bound(case: ScenarioCase, run: int, jobs: Sequence[Job]) -> float:
    """Lower bound of the OST cost of all new files that are waited for; 0 where all OSTs are given by logs."""
    key = repr((case.cluster, case.layout, case.jobs, case.inputs, case.seed, run if case.loop.drift else 0))
    if key not in _known:
        if len(_known) > 256:
            _known.clear()
        _known[key] = _computed_bound(case.cluster, jobs)
    return _known[key]


_known: dict[str, float] = {}
"""Policies and seeds of one combination share a bound; what a worker had before, it may have again."""


def _computed_bound(cluster: ClusterSpec, jobs: Sequence[Job]) -> float:
    bare = Simulation(cluster).cluster
    requests: list[CreateRequest] = []
    for job in jobs:
        if job.background:
            continue
        application = SimulatedApplication(bare, job)
        files = job.workload.files
        requests += [
            CreateRequest(files[n].size_bytes, application.layouts[n]) for n in application.created()
        ]
    if not requests:
        return 0.0
    return utilization_of(build(view_of(bare.osts, bare.osses.names, 0.0), requests))


@lru_cache(64)
def _speeds(cluster: ClusterSpec) -> float:
    """Sum over the OSTs of the speed over that of the curves."""
    if not cluster.speeds:
        return float(cluster.osts)
    whole, rest = divmod(cluster.osts, len(cluster.speeds))
    return whole * math.fsum(cluster.speeds) + math.fsum(cluster.speeds[:rest])


def _limits(cluster: ClusterSpec, jobs: Sequence[Job]) -> tuple[float, float]:
    """(read, write) bytes/s at which all OSTs, links, routers or the jobs' nodes are busy."""
    used = {n for j in jobs if not j.background for n in range(j.first_node, j.first_node + j.workload.nodes)}
    network = min(
        cluster.osses * cluster.oss_link_bytes_per_s,
        cluster.lnet_router_count * cluster.lnet_router_bytes_per_s,
        cluster.io_router_count * cluster.io_router_bytes_per_s,
        len(used) * cluster.nic_bytes_per_s,
    )
    speeds = _speeds(cluster)
    return (
        min(network, speeds * cluster.read.peak_bytes_per_s),
        min(network, speeds * cluster.write.peak_bytes_per_s),
    )


def _row(case: ScenarioCase, run: int, error: str = "") -> ScenarioRow:
    return ScenarioRow(
        case=case.id,
        scenario=case.scenario,
        sweep=case.sweep,
        cluster=case.cluster.name,
        osts=case.cluster.osts,
        layout=case.layout,
        policy=case.policy,
        seed=case.seed,
        run=run + 1,
        runs=case.loop.runs,
        error=error,
    )


def _told(
    case: ScenarioCase,
    number: int,
    jobs: Sequence[Job],
    outcome: Outcome,
    start_s: float,
    wait_s: float,
    bound: float,
) -> ScenarioRow:
    waited = [job for job in jobs if not job.background]
    names = {job.workload.name for job in waited}
    own = [job for job in outcome.jobs if job.name in names]
    fills = [ost.fill for ost in outcome.osts]
    read_limit, write_limit = _limits(case.cluster, jobs)
    more: dict[str, Any] = {}
    if case.per_ost:
        more = {
            "ost_placed_bytes": tuple(ost.placed_bytes for ost in outcome.osts),
            "ost_busy_s": tuple(ost.busy_s for ost in outcome.osts),
            "ost_queue_wait_s": tuple(ost.queue_wait_s for ost in outcome.osts),
            "oss_cpu_s": tuple(oss.cpu_s for oss in outcome.osses),
            "ost_done_s": tuple(max(0.0, ost.done_s - wait_s) for ost in outcome.osts),
            "ost_fill": tuple(fills),
        }
    return msgspec.structs.replace(
        _row(case, number),
        start_s=start_s,
        completion_s=outcome.end_s - wait_s,
        read_bytes=sum(job.read_bytes for job in own),
        written_bytes=sum(job.written_bytes for job in own),
        read_bytes_per_s=outcome.read_bytes_per_s,
        write_bytes_per_s=outcome.write_bytes_per_s,
        read_limit_bytes_per_s=read_limit,
        write_limit_bytes_per_s=write_limit,
        ost_cost=outcome.ost_cost,
        ost_cost_bound=bound,
        fill_max=max(fills),
        fill_mean=math.fsum(fills) / len(fills),
        events=outcome.events,
        stand_in="; ".join(dict.fromkeys(j.workload.stand_in for j in jobs if j.workload.stand_in)),
        assumed="; ".join(dict.fromkeys(text for job in jobs for text in job.workload.assumed)),
        jobs=tuple(
            msgspec.structs.replace(job, start_s=job.start_s - wait_s, end_s=job.end_s - wait_s)
            for job in outcome.jobs
        ),
        **more,
    )
