"""Figure 22 of the paper (section 7.4) as a table: read and write throughput on its cluster, cell by cell.

The figure prints no numbers; its text says that reading gains up to 43 % and that writing loses up to 10 %. Nothing
is calibrated on that. Each row is what tarazu's placement gives beside that of Lustre's allocator in the same
simulator, with the same layouts, mean of the seeds; judged is that no cell is faster than all servers' links, and all
disks. The start is not printed either: the OSTs are empty, or 0 to 25 % full, where Lustre's allocator weighs space at
random; and the servers' links are the preset's Gigabit, or so fast that disks are the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean

import msgspec
import numpy as np

from tarazu.sim.model.outcome import Outcome
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Job
from tarazu.sim.validation.hacc_ior import LIMITS, cluster, with_limit
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow, relative
from tarazu.sim.workloads import hacc, ior
from tarazu.sim.workloads.workload import Workload
from tarazu.units import GIB

SEEDS = 10
STARTS = {"empty": 0.0, "0-25 % full": 0.25}
SEGMENTS = 16
SOURCE = "this simulator under Lustre's allocator; the figure prints no numbers"


class Cell(msgspec.Struct, frozen=True):
    """One group of bars: an application in one layout."""

    name: str
    striping: str
    workload: Workload
    start: str = "empty"
    limit: str = "links"

    def spec(self, seed: int) -> ClusterSpec:
        osts = cluster().osts
        used = np.random.default_rng(seed).permutation(np.linspace(0, STARTS[self.start], osts))
        return with_limit(msgspec.structs.replace(cluster(), used=tuple(used.tolist())), self.limit)

    @property
    def where(self) -> str:
        return f"{self.name}, {self.striping}, {self.start}, {self.limit}"


def cells() -> tuple[Cell, ...]:
    """As in the figure, PFL configuration 2 with a file per process only; each with every start and limit."""
    return tuple(
        msgspec.structs.replace(cell, start=start, limit=limit)
        for start in STARTS
        for limit in LIMITS
        for cell in _cells()
    )


def _cells() -> tuple[Cell, ...]:
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
    separate = [Cell(n, striping, w) for n, w in apart.items() for striping in ("plain", "pfl-1", "pfl-2")]
    return (*separate, *(Cell(n, striping, w) for n, w in shared.items() for striping in ("plain", "pfl-1")))


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
    return [Simulation(cell.spec(seed), policy, seed).run([job]) for seed in range(seeds)]


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[ValidationRow, ...]:
    """Two rows a cell; the short form has the cells of the smallest application, on empty OSTs."""
    comparisons: list[ValidationRow] = []
    fastest: dict[str, tuple[float, float]] = {}
    chosen = cells() if full else [cell for cell in _cells() if cell.name.startswith("HACC-IO 16")]
    for cell in chosen:
        progress(f"figure 22: {cell.where}")
        lustre, ours = (outcomes(cell, policy, SEEDS if full else 1) for policy in ("lsa", "tarazu"))
        for what, expected, value in (
            ("read", _read(lustre), _read(ours)),
            ("written", _written(lustre), _written(ours)),
        ):
            comparisons.append(
                relative(f"figure 22: {cell.where}: {what}", "MB/s", expected, value, math.inf, SOURCE)
            )
            most = most_mb_per_s(cell.limit)
            if max(expected, value) > fastest.get(cell.limit, (0.0, 0.0))[0]:
                fastest[cell.limit] = (max(expected, value), most)
    for limit, (of, most) in fastest.items():
        name = f"figure 22: the fastest cell, {limit}"
        comparisons.append(
            ValidationRow(name, "MB/s", most, of, of / most, 1.0, "all OSSs' links, and all disks")
        )
    return tuple(comparisons)


def most_mb_per_s(limit: str) -> float:
    """All servers' links together, which every byte goes over, and all disks."""
    spec = with_limit(cluster(), limit)
    return min(spec.osses * spec.oss_link_bytes_per_s, spec.osts * spec.write.peak_bytes_per_s) / 1e6


def _read(of: Sequence[Outcome]) -> float:
    return mean(outcome.read_bytes_per_s for outcome in of) / 1e6


def _written(of: Sequence[Outcome]) -> float:
    return mean(outcome.write_bytes_per_s for outcome in of) / 1e6
