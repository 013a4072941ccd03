"""What a placement is judged by beside what the simulator plays: the time until the last byte is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tarazu.allocate import lustres_own, timing
from tarazu.config import Weights
from tarazu.model import CreateRequest, FilePlacement, SystemView
from tarazu.sim.allocation import policies
from tarazu.sim.model import striping, view
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Job
from tests.benchmarks.figure import Figure
from tests.benchmarks.time.grid import Cell

WEIGHTS = Weights()
MOST_OSTS = 480
"""Beyond, a cell takes minutes."""
LUSTRES_SEEDS = 3


class Beside(NamedTuple):
    """Seconds of one cell, the sum of its jobs': estimated, and played."""

    cell: str
    placed: tuple[float, float]
    lustres: tuple[float, float]

    @property
    def errors(self) -> tuple[float, float]:
        """Estimated over played: of ours, of Lustre's own."""
        return self.placed[0] / self.placed[1], self.lustres[0] / self.lustres[1]


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


def place_all(simulation: Simulation) -> None:
    """Whatever it gains."""
    simulation.cluster.planner._policy.least_gain = -1.0  # type: ignore[attr-defined]


def left(spec: ClusterSpec, job: Job, own: Job, seed: int) -> bool:
    """Whether mdsd leaves the job's files to Lustre, where they have the layout of `own`."""
    requests = [
        CreateRequest(r.size_bytes, r.layout, None if of.layout == r.layout else of.layout, r.writers)
        for r, of in zip(requests_of(job, spec.osts), requests_of(own, spec.osts))
    ]
    policy = policies.of_site("tarazu", seed)
    return not policy.allocate(view_of(Simulation(spec, "tarazu", seed)), requests).files[0].osts


class _Estimated:
    """Around a planner: what is expected of each job at the moment of its plan."""

    def __init__(self, simulation: Simulation) -> None:
        self._cluster = simulation.cluster
        self._plan = self._cluster.planner.plan
        self._cluster.planner.plan = self  # type: ignore[method-assign, assignment]
        self.placed_s = self.lustres_s = 0.0

    def __call__(
        self, requests: Sequence[CreateRequest], now: float, of_wave: Sequence[int] = ()
    ) -> tuple[FilePlacement, ...]:
        cluster = self._cluster
        seen = view.view_of(cluster.osts, cluster.osses.names, now, cluster.planner.promised)
        files = self._plan(requests, now, of_wave)
        self.placed_s += timing.time_s(seen, requests, files, WEIGHTS)
        self.lustres_s += lustres_own.time_s(seen, requests, of_wave, WEIGHTS)
        return files


def placed(spec: ClusterSpec, job: Job, seed: int) -> tuple[float, float]:
    """(estimated, played) under tarazu, where everything is placed."""
    simulation = Simulation(spec, "tarazu", seed)
    place_all(simulation)
    expected = _Estimated(simulation)
    played_s = simulation.run([job]).jobs[0].write_s
    return expected.placed_s, played_s


def lustres(spec: ClusterSpec, job: Job, seeds: int) -> tuple[float, float]:
    """The same under Lustre's own allocator, wherever it begins."""
    seen = view_of(Simulation(spec, "lsa", 0))
    expected = lustres_own.time_s(seen, requests_of(job, spec.osts), (), WEIGHTS)
    return expected, _lustres_s(spec, [job], seeds)


def _lustres_s(spec: ClusterSpec, jobs: list[Job], seeds: int) -> float:
    return float(
        np.mean(
            [sum(j.write_s for j in Simulation(spec, "lsa", seed).run(jobs).jobs) for seed in range(seeds)]
        )
    )


def beside(cell: Cell, seed: int) -> Beside:
    """All jobs of a cell; Lustre's own beside what others were promised under tarazu."""
    spec, jobs = cell.cluster(seed), cell.played()
    simulation = Simulation(spec, "tarazu", seed)
    place_all(simulation)
    expected = _Estimated(simulation)
    played_s = sum(job.write_s for job in simulation.run(jobs).jobs)
    seeds = LUSTRES_SEEDS if cell.osts < MOST_OSTS else 1
    return Beside(
        cell.name, (expected.placed_s, played_s), (expected.lustres_s, _lustres_s(spec, jobs, seeds))
    )


def figures(found: list[Beside]) -> list[Figure]:
    """Of one job, and of three that share the system."""
    named = {
        "": [b for b in found if "three jobs" not in b.cell],
        ", three jobs": [b for b in found if "three jobs" in b.cell],
    }
    return [figure for which, of in named.items() if of for figure in _figures(of, which)]


def _figures(found: list[Beside], which: str) -> list[Figure]:
    ours, own = np.array([b.errors for b in found]).T
    worst = found[int(np.argmax(np.abs(ours - 1)))].cell
    ratio = np.abs(ours / own - 1)
    return [
        Figure(f"estimate over the simulator, mean{which}", float(ours.mean()), ""),
        Figure(f"its error, mean{which}", float(np.abs(ours - 1).mean()), ""),
        Figure(f"its error, worst ({worst})", float(np.abs(ours - 1).max()), ""),
        Figure(f"estimate of Lustre's own over the simulator, mean{which}", float(own.mean()), ""),
        Figure(f"ratio of the two over the simulator's, error, mean{which}", float(ratio.mean()), ""),
        Figure(f"ratio of the two over the simulator's, error, worst{which}", float(ratio.max()), ""),
    ]
