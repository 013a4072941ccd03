"""What a placement is judged by beside what the simulator plays: the time until the last byte is written."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tarazu.allocate import lustres_own, timing
from tarazu.config import Weights
from tarazu.model import CreateRequest, SystemView
from tarazu.sim.allocation import policies
from tarazu.sim.model import striping, view
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Job
from tests.benchmarks.figure import Figure
from tests.benchmarks.time.grid import Cell

WEIGHTS = Weights()


class Beside(NamedTuple):
    """Seconds of one cell: estimated, and played."""

    cell: str
    placed: tuple[float, float]
    lustres: tuple[float, float]


def view_of(simulation: Simulation) -> SystemView:
    cluster = simulation.cluster
    return view.view_of(cluster.osts, cluster.osses.names, 0.0)


def requests_of(job: Job, osts: int) -> list[CreateRequest]:
    """The new files of a job as mdsd is asked for them."""
    work = job.workload
    wanted = [striping.Expected(f.size_bytes) for f in work.files]
    writers = work.ranks if len(work.files) == 1 else 1
    layouts = striping.layouts(striping.rule(job.striping), wanted, osts)
    return [
        CreateRequest(f.size_bytes, of, writers=writers) for f, of in zip(work.files, layouts, strict=True)
    ]


def placed(spec: ClusterSpec, job: Job, seed: int) -> tuple[float, float]:
    """(estimated, played) under tarazu, where everything is placed."""
    simulation = Simulation(spec, "tarazu", seed)
    seen, requests = view_of(simulation), requests_of(job, spec.osts)
    files = policies.make("tarazu", seed).allocate(seen, requests).files
    simulation.cluster.planner._policy.least_gain = -1.0  # type: ignore[attr-defined]
    return timing.time_s(seen, requests, files, WEIGHTS), simulation.run([job]).jobs[0].write_s


def lustres(spec: ClusterSpec, job: Job, seeds: int) -> tuple[float, float]:
    """The same under Lustre's own allocator, wherever it begins."""
    seen = view_of(Simulation(spec, "lsa", 0))
    expected = lustres_own.time_s(seen, requests_of(job, spec.osts), (), WEIGHTS)
    played = [Simulation(spec, "lsa", seed).run([job]).jobs[0].write_s for seed in range(seeds)]
    return expected, float(np.mean(played))


def beside(work: tuple[Cell, int]) -> Beside:
    cell, seed = work
    spec, (job,) = cell.cluster(seed), cell.played()
    return Beside(cell.name, placed(spec, job, seed), lustres(spec, job, 3))


def figures(found: list[Beside]) -> list[Figure]:
    ours = np.array([b.placed[0] / b.placed[1] for b in found])
    own = np.array([b.lustres[0] / b.lustres[1] for b in found])
    worst = found[int(np.argmax(np.abs(ours - 1)))].cell
    return [
        Figure("estimate over the simulator, mean", float(ours.mean()), ""),
        Figure(f"its error, worst ({worst})", float(np.abs(ours - 1).max()), ""),
        Figure("estimate of Lustre's own over the simulator, mean", float(own.mean()), ""),
        Figure(
            "ratio of the two over the simulator's, error, mean", float(np.abs(ours / own - 1).mean()), ""
        ),
        Figure(
            "ratio of the two over the simulator's, error, worst", float(np.abs(ours / own - 1).max()), ""
        ),
    ]
