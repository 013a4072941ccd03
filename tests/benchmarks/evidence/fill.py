"""How unequally full real OSTs are, and what tarazu gains there in simulation beside fills that are assumed.

Four file systems of NERSC on one day of 2017 (`tests/data/evidence/fill.csv`): 24, 24, 36 and 248 OSTs. Programs and
limits are those of `make bench-time` that are one job; their OSTs have 10 TB, so that the fill stays what it was.
"""

from __future__ import annotations

import csv
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import geometric_mean, mean
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec
from tests.benchmarks.figure import Figure
from tests.benchmarks.time.grid import FILLS, Cell, cells

EXTRACT = Path(__file__).parents[2] / "data" / "evidence" / "fill.csv"
OST_BYTES = 10 * 10**12
SERVERS = {24: 4, 36: 6, 248: 8}
"""OSTs of a server, by OSTs of a file system; the source does not say them."""
PROGRAMS = ("IOR 16 x 2 GiB", "HACC-IO 16 x 20 M")
LAYOUTS = ("plain", "pfl-1", "pfl-2")
POLICIES = ("lsa", "round-robin", "tarazu")
SEEDS = 3
LUSTRE_WEIGHS = (256 - 17 * 256 // 100) / 256
"""Lustre goes by free space where the least free OST has less than this share of the most free one's (17 %)."""


class Work(NamedTuple):
    cell: Cell
    spec: ClusterSpec
    seeds: int


def real() -> dict[str, list[float]]:
    """File system → share in use of each OST, by index, at the day's beginning."""
    found: dict[str, list[float]] = {}
    with EXTRACT.open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["file_system"], []).append(float(row["first_used_share"]))
    return found


def measure(short: bool) -> list[Figure]:
    fills = {f"{name}, {len(used)} OSTs": used for name, used in real().items()}
    for name, (low, high) in FILLS.items():
        if high:
            fills[f"assumed: {name}"] = np.linspace(low, high, 36).tolist()
    figures = []
    for name, used in fills.items():
        free = 1 - np.array(used)
        figures += [
            Figure(f"{name}: fullest less emptiest", 100 * float(np.ptp(free)), "points"),
            Figure(
                f"{name}: free space, least by most (Lustre weighs below {LUSTRE_WEIGHS:.2f})",
                float(free.min() / free.max()),
                "",
            ),
            Figure(f"{name}: free space, spread by mean", 100 * float(free.std() / free.mean()), "%"),
        ]
    chosen = [
        cell
        for cell in cells()
        if cell.fill == "empty" and cell.osts == 35 and cell.program in PROGRAMS and cell.layout in LAYOUTS
    ]
    if short:
        fills = dict(list(fills.items())[:1])
        chosen = chosen[:1]
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        for name, used in fills.items():
            todo = [Work(cell, _spec(cell, used), 1 if short else SEEDS) for cell in chosen]
            times = np.array(list(workers.map(seconds, todo)))
            lustre, ring, ours = times.T
            figures += [
                Figure(
                    f"{name}: time over Lustre's, geometric mean of {len(todo)}",
                    geometric_mean((ours / lustre).tolist()),
                    "",
                ),
                Figure(f"{name}: ... worst", float((ours / lustre).max()), "", most=1.02),
                Figure(
                    f"{name}: round robin's over Lustre's, geometric mean",
                    geometric_mean((ring / lustre).tolist()),
                    "",
                ),
            ]
    return figures


def _spec(cell: Cell, used: list[float]) -> ClusterSpec:
    return msgspec.structs.replace(
        cell.spec, osts=len(used), osts_per_oss=SERVERS[len(used)], ost_bytes=OST_BYTES, used=tuple(used)
    )


def seconds(work: Work) -> list[float]:
    """Of each policy: from the job's start to the last byte that was read again."""
    found = []
    for policy in POLICIES:
        runs = [Simulation(work.spec, policy, seed).run(work.cell.played()) for seed in range(work.seeds)]
        found.append(mean(job.end_s - job.start_s for run in runs for job in run.jobs))
    return found
