"""Jobs' time under tarazu beside Lustre's own allocator, round robin, random and a bound, cell by cell of a grid."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import geometric_mean, mean

import numpy as np

from tarazu.sim.model.simulation import Simulation
from tests.benchmarks.figure import Figure
from tests.benchmarks.time import estimates, year
from tests.benchmarks.time.bound import bound_s
from tests.benchmarks.time.grid import Cell, cells

POLICIES = ("lsa", "round-robin", "random", "tarazu")
SEEDS = 5
PAPER_OSTS = 35
FIRST_SEED = int(os.environ.get("BENCH_TIME_SEED", "0"))
"""Another one: other fills, other draws."""
OUT = os.environ.get("BENCH_TIME_OUT", "")
"""File for each cell's numbers."""


def seconds(cell: Cell, policy: str, seed: int) -> float:
    """Sum of the jobs' times, from their starts to the last byte that was read again."""
    outcome = Simulation(cell.cluster(seed), policy, seed).run(cell.played())
    return sum(job.end_s - job.start_s for job in outcome.jobs)


def row(work: tuple[int, Cell, int]) -> dict[str, object]:
    number, cell, seeds = work
    times = {
        policy: [seconds(cell, policy, FIRST_SEED + seed) for seed in range(seeds)] for policy in POLICIES
    }
    return {"number": number, "cell": cell.name, "bound": bound_s(cell.spec, cell.played()), **times}


def measure(short: bool) -> list[Figure]:
    todo = [(n, cell, 1 if short else SEEDS) for n, cell in enumerate(cells(short))]
    rows = []
    days, years = (30, 1) if short else (365, 3)
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        seeds = range(FIRST_SEED, FIRST_SEED + years)
        filled = {
            p: [workers.submit(year.spread, p, seed, days) for seed in seeds] for p in ("tarazu", "lsa")
        }
        for done, found in enumerate(workers.map(row, todo), 1):
            rows.append(found)
            if sys.stderr.isatty():
                print(f"\r  {done} of {len(todo)} cells", end="", file=sys.stderr, flush=True)
        alone = [(cell, FIRST_SEED) for _, cell, _ in todo if len(cell.jobs) == 1 and cell.osts == PAPER_OSTS]
        estimated = list(workers.map(estimates.beside, alone))
        ours, lustres = ([of.result() for of in filled[p]] for p in ("tarazu", "lsa"))
    if OUT:
        Path(OUT).write_text(
            json.dumps({"cells": rows, "estimates": [e._asdict() for e in estimated]}, indent=1)
        )
    return [*figures(rows), *estimates.figures(estimated), *year.figures(ours, lustres)]


def figures(rows: list[dict[str, object]]) -> list[Figure]:
    means = {p: np.array([mean(r[p]) for r in rows]) for p in POLICIES}  # type: ignore[arg-type]
    bound = np.array([r["bound"] for r in rows], float)
    lustre, ours = means["lsa"], means["tarazu"]
    better = np.minimum(lustre, means["round-robin"])
    worst, beside = int(np.argmax(ours / lustre)), int(np.argmax(ours / better))
    return [
        Figure("cells", float(len(rows)), ""),
        Figure(f"time over Lustre's, worst ({rows[worst]['cell']})", float((ours / lustre)[worst]), "", 1.02),
        Figure(
            f"over the better of Lustre's and round robin, worst ({rows[beside]['cell']})",
            float((ours / better)[beside]),
            "",
            1.06,
        ),
        Figure("time over Lustre's, geometric mean", geometric_mean((ours / lustre).tolist()), "", 0.85),
        Figure("time over the bound, mean", float((ours / bound).mean()), "", 1.2),
        Figure(
            "round robin over Lustre's, geometric mean",
            geometric_mean((means["round-robin"] / lustre).tolist()),
            "",
        ),
        Figure(
            "random over Lustre's, geometric mean", geometric_mean((means["random"] / lustre).tolist()), ""
        ),
    ]
