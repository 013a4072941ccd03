"""Figure 22 of the paper (section 7.4) as a table: read and write throughput on its cluster, cell by cell.

The figure prints no numbers; its text says that reading gains up to 43 % and that writing loses up to 10 %. Nothing
is calibrated on that. Each row is what tarazu's placement gives beside that of Lustre's allocator in the same
simulator, with the same layouts, mean of the seeds; judged is that no cell is faster than all servers' links.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean

import msgspec

from tarazu.sim.model.outcome import Outcome
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import Job
from tarazu.sim.validation.hacc_ior import cluster
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import Row, relative
from tarazu.sim.workloads import hacc, ior
from tarazu.sim.workloads.workload import Workload
from tarazu.units import GIB

SEEDS = 10
SEGMENTS = 16
SOURCE = "this simulator under Lustre's allocator; the figure prints no numbers"


class Cell(msgspec.Struct, frozen=True):
    """One group of bars: an application in one layout."""

    name: str
    striping: str
    workload: Workload


def cells() -> tuple[Cell, ...]:
    """As in the figure: PFL configuration 2 with a file per process only."""
    apart = {
        "IOR 16 x 2 GiB, FPP": _ior(16, 2 * GIB, shared=False),
        "IOR 16 x 8 GiB, FPP": _ior(16, 8 * GIB, shared=False),
        "HACC-IO 8 x 50 M, FPP": hacc.workload(ranks=8, ranks_per_node=4, particles=50_000_000),
        "HACC-IO 16 x 20 M, FPP": hacc.workload(ranks=16, particles=20_000_000),
    }
    shared = {
        "IOR 8 GiB, SSF": _ior(8, GIB, shared=True),
        "IOR 16 GiB, SSF": _ior(8, 2 * GIB, shared=True),
    }
    found = [Cell(n, striping, w) for n, w in apart.items() for striping in ("plain", "pfl-1", "pfl-2")]
    return (*found, *(Cell(n, striping, w) for n, w in shared.items() for striping in ("plain", "pfl-1")))


def _ior(ranks: int, size_bytes: int, shared: bool) -> Workload:
    segments = 1 if shared else SEGMENTS
    return ior.workload(
        ranks=ranks,
        ranks_per_node=ranks // 2,
        block_bytes=size_bytes // segments,
        segments=segments,
        interface="MPIIO",
        shared=shared,
    )


def outcomes(cell: Cell, policy: str, seeds: int) -> list[Outcome]:
    job = Job(cell.workload, striping=cell.striping)
    return [Simulation(cluster(), policy, seed).run([job]) for seed in range(seeds)]


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[Row, ...]:
    """Two rows a cell; the short form has the cells of the smallest application."""
    found: list[Row] = []
    chosen = [cell for cell in cells() if full or cell.name.startswith("HACC-IO 16")]
    for cell in chosen:
        progress(f"figure 22: {cell.name}, {cell.striping}")
        lustre, ours = (outcomes(cell, policy, SEEDS if full else 1) for policy in ("lsa", "tarazu"))
        for what, expected, value in (
            ("read", _read(lustre), _read(ours)),
            ("written", _written(lustre), _written(ours)),
        ):
            name = f"figure 22: {cell.name}, {cell.striping}: {what}"
            found.append(relative(name, "MB/s", expected, value, math.inf, SOURCE))
    fastest, links = max(max(row.expected, row.found) for row in found), links_mb_per_s()
    found.append(
        Row("figure 22: the fastest cell", "MB/s", links, fastest, fastest / links, 1.0, "all OSSs' links")
    )
    return tuple(found)


def links_mb_per_s() -> float:
    """All servers' links together, which every byte goes over."""
    spec = cluster()
    return spec.osses * spec.oss_link_bytes_per_s / 1e6


def _read(of: Sequence[Outcome]) -> float:
    return mean(outcome.read_bytes_per_s for outcome in of) / 1e6


def _written(of: Sequence[Outcome]) -> float:
    return mean(outcome.write_bytes_per_s for outcome in of) / 1e6
