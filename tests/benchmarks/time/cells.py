"""Jobs' time under tarazu beside Lustre's own allocator, round robin, random and a bound, cell by cell of a grid.

Of the environment: `BENCH_TIME_SEED`, other fills and draws; `BENCH_TIME_DRAWN`, so many cells of programs and layouts
drawn from that seed instead of the grid; `BENCH_TIME_ONLY`, cells whose names have this in them; `BENCH_TIME_OUT`, a
CSV file with a line for each cell.
"""

from __future__ import annotations

import csv
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from statistics import geometric_mean, mean
from typing import NamedTuple

import numpy as np

from tarazu.sim.model.simulation import Simulation
from tests.benchmarks.figure import Figure
from tests.benchmarks.time import estimates
from tests.benchmarks.time.bound import bound_s
from tests.benchmarks.time.estimates import Beside
from tests.benchmarks.time.grid import FIRST_SEED, Cell, cells, drawn

POLICIES = ("lsa", "round-robin", "random", "tarazu")
SEEDS = 5
DRAWN = int(os.environ.get("BENCH_TIME_DRAWN", "0"))
ONLY = os.environ.get("BENCH_TIME_ONLY", "")
OUT = os.environ.get("BENCH_TIME_OUT", "")


class Row(NamedTuple):
    """One cell: seconds, the sum of the jobs' times from their starts to the last byte that was read again."""

    cell: str
    bound: float
    lustre: float
    round_robin: float
    random: float
    tarazu: float
    estimate: Beside | None

    @property
    def over_lustre(self) -> float:
        return self.tarazu / self.lustre

    @property
    def over_bound(self) -> float:
        return self.tarazu / self.bound

    @property
    def columns(self) -> dict[str, str]:
        ours, own = self.estimate.errors if self.estimate else ("", "")
        numbers = {
            "bound_s": self.bound,
            "lustre_s": self.lustre,
            "round_robin_s": self.round_robin,
            "random_s": self.random,
            "tarazu_s": self.tarazu,
            "over_lustre": self.over_lustre,
            "over_bound": self.over_bound,
            "estimate_over_played": ours,
            "lustres_estimate_over_played": own,
        }
        return {"cell": self.cell} | {k: v if isinstance(v, str) else f"{v:.4g}" for k, v in numbers.items()}


def seconds(cell: Cell, policy: str, seed: int) -> float:
    spec, jobs = cell.cluster(seed), cell.played(policy)
    if cell.auto and policy == "tarazu":
        # What gains nothing keeps the layout that Lustre would give it.
        (job,), (own,) = jobs, cell.played()
        if estimates.left(spec, job, own, seed):
            policy, jobs = "lsa", [own]
    simulation = Simulation(spec, policy, seed)
    if cell.auto and policy == "tarazu":
        estimates.place_all(simulation)
    return sum(job.end_s - job.start_s for job in simulation.run(jobs).jobs)


def row(work: tuple[Cell, int]) -> Row:
    cell, seeds = work
    times = {p: mean(seconds(cell, p, FIRST_SEED + seed) for seed in range(seeds)) for p in POLICIES}
    estimated = (
        estimates.beside(cell, FIRST_SEED) if cell.osts <= estimates.MOST_OSTS and not cell.auto else None
    )
    bound = bound_s(cell.spec, cell.played())
    if cell.auto:
        bound = min(bound, bound_s(cell.spec, cell.played("tarazu")))
    return Row(cell.name, bound, *(times[p] for p in POLICIES), estimated)


def measure(short: bool) -> list[Figure]:
    wanted = drawn(DRAWN, FIRST_SEED) if DRAWN else cells(short and not ONLY)
    todo = [(cell, 1 if short else SEEDS) for cell in wanted if ONLY in cell.name]
    rows = []
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        for found in workers.map(row, todo):
            rows.append(found)
            print(
                f"  {len(rows):3} of {len(todo)}  {found.cell:<58} {found.over_lustre:6.3f} of Lustre's"
                f" {found.over_bound:6.3f} of the bound",
                file=sys.stderr,
                flush=True,
            )
    if OUT:
        with open(OUT, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].columns)
            writer.writeheader()
            writer.writerows(of.columns for of in rows)
    estimated = [of.estimate for of in rows if of.estimate]
    return [*figures(rows), *estimates.figures(estimated)]


def figures(rows: list[Row]) -> list[Figure]:
    """The status is that of the first two; programs that are drawn gain what they can."""
    lustre = np.array([of.lustre for of in rows])
    ours, ring, random = (
        np.array([getattr(of, p) for of in rows]) for p in ("tarazu", "round_robin", "random")
    )
    better = np.minimum(lustre, ring)
    worst, beside = int(np.argmax(ours / lustre)), int(np.argmax(ours / better))
    gain = geometric_mean((ours / lustre).tolist())
    return [
        Figure("cells", float(len(rows)), ""),
        Figure(
            f"time over Lustre's, worst ({rows[worst].cell})",
            float((ours / lustre)[worst]),
            "",
            1.02,
            goal=1.02,
        ),
        Figure("time over Lustre's, geometric mean", gain, "", None if DRAWN or ONLY else 0.85, goal=0.85),
        Figure(
            f"over the better of Lustre's and round robin, worst ({rows[beside].cell})",
            float((ours / better)[beside]),
            "",
            goal=1.05,
        ),
        Figure("time over the bound, mean", mean(of.over_bound for of in rows), "", goal=1.10),
        Figure("Lustre's own over the bound, mean", mean(of.lustre / of.bound for of in rows), ""),
        Figure("round robin over Lustre's, geometric mean", geometric_mean((ring / lustre).tolist()), ""),
        Figure("random over Lustre's, geometric mean", geometric_mean((random / lustre).tolist()), ""),
    ]
