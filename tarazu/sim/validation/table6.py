"""Table 6 of the paper (section 6.4): IOR, one file per process, on Titan; nine bandwidths that were measured.

    time = phase + files x create + fullest OST's stripes x bytes of a stripe / bandwidth of an OST

The simulator gives exactly this for a file per node that is created, waited for by all, and written: the MDS creates
one file after another, and the OST that holds most stripes is the first bottleneck and the last one done. How many
stripes it holds comes from the model of Lustre's allocator, which draws OSTs at random where their space is uneven:
that imbalance is why bandwidth grows so slowly with nodes. Three parameters are calibrated on three rows, within what
is publicly known of them, and the other six rows are predicted; so for all 84 choices of three rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from statistics import median

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.allocate.lsa import Lsa
from tarazu.lustre import EOF
from tarazu.model import Component, Layout, Ost, SystemView
from tarazu.sim.model import presets
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Job, ServiceCurve
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow, relative
from tarazu.sim.workloads.workload import OPERATION, File, OperationKind, Workload
from tarazu.units import GIB, MIB

Array = NDArray[np.float64]

MB, GB = MIB, GIB
"""As IOR counts."""
STRIPES = 4
"""Spider II's default stripe count; stripes of 1 MiB."""
CHOSEN = 3
LIMIT = 0.066
"""What the paper's simulator has over all nine rows."""
NOISE = 0.1
"""Relative, of one measured row: what repeated IOR runs on a busy production file system differ by."""
SOURCE = "paper, table 6"


class Measured(msgspec.Struct, frozen=True):
    """One row of table 6."""

    file_mb: int
    nodes: int
    titan_gb_per_s: float
    paper_gb_per_s: float
    """What the paper's simulator says."""

    @property
    def seconds(self) -> float:
        return self.nodes * self.file_mb * MB / (self.titan_gb_per_s * GB)


TABLE = (
    Measured(128, 32, 7.9, 6.2),
    Measured(128, 256, 38.4, 33.5),
    Measured(128, 512, 54.3, 48.7),
    Measured(128, 1024, 72.1, 69.9),
    Measured(128, 2048, 90.8, 88.1),
    Measured(128, 4096, 111.4, 105.6),
    Measured(512, 1024, 76.5, 75.8),
    Measured(512, 2048, 111.6, 110.5),
    Measured(512, 4096, 132.5, 130.4),
)


class CalibratedParameter(msgspec.Struct, frozen=True):
    """A physical quantity that is calibrated, and what is known of it beforehand."""

    name: str
    typical: float
    factor: float
    """One standard deviation of what is known, as a factor."""
    source: str


PARAMETERS = (
    CalibratedParameter(
        "phase, s", 0.3, 3.0, "a barrier, the slowest open and close of thousands of clients: 0.1 to 1 s"
    ),
    CalibratedParameter(
        "creates/s", 8400.0, 4.0, "one MDS: 2,000 with objects on loaded OSTs to 35,000 (Lustre manual)"
    ),
    CalibratedParameter(
        "OST, MB/s",
        245.0,
        2.06,
        "Spider II: 1 TB/s over 2,016 OSTs in sequence, 496 each; about a quarter of it at random (Oral et al., SC'14)",
    ),
)

FULLEST = {32: 2.0, 256: 5.0, 512: 8.0, 1024: 12.0, 2048: 19.0, 4096: 32.0}
"""Nodes → stripes on the fullest OST, median of SEEDS draws; the full form draws them again."""
SEEDS = 60
UNEVEN = (0.45, 0.65)
"""Used share of OSTs, evenly between: their free space differs by more than `qos_threshold_rr`."""


def used(osts: int, seed: int = 0) -> tuple[float, ...]:
    """Used share of each OST of a file system that has been in use for long."""
    low, high = UNEVEN
    return tuple((low + (high - low) * np.random.default_rng(seed).random(osts)).tolist())


@cache
def fullest(nodes: int, seed: int) -> int:
    """Stripes on the fullest OST when Lustre's allocator places a file per node."""
    spec = presets.named("titan").spec
    osts = []
    for index, share in enumerate(used(spec.osts, seed)):
        free = int(spec.ost_bytes * (1 - share))
        osts.append(Ost(index, f"oss{index // spec.osts_per_oss}", spec.ost_bytes, free, free))
    lsa = Lsa(SystemView("atlas", 0.0, tuple(osts)), seed)
    held = Counter(ost for _ in range(nodes) for ost in lsa.create(STRIPES))
    return max(held.values())


def terms(rows: Sequence[Measured], stripes: dict[int, float] = FULLEST) -> Array:
    """Per row what the three parameters are multiplied by: 1 (s), files (s each), MB at the fullest OST (s per MB)."""
    return np.array([[1.0, r.nodes, stripes[r.nodes] * r.file_mb / STRIPES] for r in rows])


def costs(parameters: Sequence[float]) -> Array:
    """Seconds, seconds per create, seconds per MB."""
    phase, creates, bandwidth = parameters
    return np.array([phase, 1 / creates, 1 / bandwidth])


def calibrate(
    rows: Sequence[Measured],
    known: Sequence[CalibratedParameter] = PARAMETERS,
    stripes: dict[int, float] = FULLEST,
    noise: float = NOISE,
) -> tuple[float, ...]:
    """The parameters that are likeliest given these rows and what is known of them (log-normal, both)."""
    factors, seconds = terms(rows, stripes), np.array([r.seconds for r in rows])
    centre = np.log(costs([p.typical for p in known]))
    width = np.log([p.factor for p in known])
    log_costs = centre.copy()
    for _ in range(50):
        parts = factors * np.exp(log_costs)
        time = parts.sum(axis=1)
        misfit = np.concatenate([np.log(time / seconds) / noise, (log_costs - centre) / width])
        slope = np.vstack([parts / time[:, None] / noise, np.diag(1 / width)])
        step = np.linalg.lstsq(slope, misfit, rcond=None)[0]
        log_costs -= np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-12:
            break
    phase, create, byte = np.exp(log_costs)
    return (float(phase), float(1 / create), float(1 / byte))


def predicted(
    rows: Sequence[Measured], parameters: Sequence[float], stripes: dict[int, float] = FULLEST
) -> Array:
    """GB/s of each row."""
    total = np.array([r.nodes * r.file_mb for r in rows]) * MB / GB
    result: Array = total / (terms(rows, stripes) @ costs(parameters))
    return result


def errors(
    known: Sequence[CalibratedParameter] = PARAMETERS,
    stripes: dict[int, float] = FULLEST,
    noise: float = NOISE,
) -> Array:
    """Relative errors, 84 choices x 9 rows; NaN for the rows on which that choice was calibrated."""
    result = np.full((84, len(TABLE)), np.nan)
    measured = np.array([r.titan_gb_per_s for r in TABLE])
    for i, choice in enumerate(combinations(range(len(TABLE)), CHOSEN)):
        parameters = calibrate([TABLE[j] for j in choice], known, stripes, noise)
        result[i] = predicted(TABLE, parameters, stripes) / measured - 1
        result[i, list(choice)] = np.nan
    return result


def workload(row: Measured, phase_s: float) -> Workload:
    """A file per node: all are created, all wait for one another, all write; `phase_s` goes by before."""
    size, layout = row.file_mb * MB, Layout((Component(0, EOF, MIB, STRIPES),))
    kinds = np.array([OperationKind.CREATE, OperationKind.BARRIER, OperationKind.WRITE, OperationKind.CLOSE])
    operations = np.zeros((row.nodes, len(kinds)), OPERATION)
    operations["rank"] = np.arange(row.nodes)[:, None]
    operations["file"] = np.where(kinds == OperationKind.BARRIER, -1, operations["rank"])
    operations["kind"] = kinds
    operations["delay_s"][:, 0] = phase_s
    operations["bytes"] = operations["span_bytes"] = np.where(kinds == OperationKind.WRITE, size, 0)
    files = tuple(File(f"/atlas/ior/{rank:08}", size, layout=layout) for rank in range(row.nodes))
    return Workload(f"ior-{row.file_mb}mb-{row.nodes}", row.nodes, 1, files, operations.ravel())


def cluster(parameters: Sequence[float], seed: int) -> ClusterSpec:
    """Titan with the calibrated parameters, its OSTs unevenly filled."""
    spec = presets.named("titan").spec
    _, creates, bandwidth = parameters
    return msgspec.structs.replace(
        spec,
        write=ServiceCurve(bandwidth * MB),
        create_s=1 / creates,
        mds_threads=1,
        used=used(spec.osts, seed),
    )


def simulated(row: Measured, parameters: Sequence[float], seed: int) -> tuple[float, int]:
    """(GB/s of the simulator, stripes on the fullest OST there)."""
    job = Job(workload(row, parameters[0]))
    outcome = Simulation(cluster(parameters, seed), "lsa", seed).run([job])
    stripe = row.file_mb * MB / STRIPES
    held = round(max(ost.placed_bytes for ost in outcome.osts) / stripe)
    return row.nodes * row.file_mb * MB / outcome.end_s / GB, held


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[ValidationRow, ...]:
    """The judged median first, then what it is made of."""
    stripes, placements = FULLEST, []
    if full:
        for nodes, expected in FULLEST.items():
            progress(f"table 6: Lustre's allocator places {nodes:,} files, {SEEDS} times")
            drawn = float(median(fullest(nodes, seed) for seed in range(SEEDS)))
            name = f"table 6: {nodes:,} nodes, stripes on the fullest OST"
            placements.append(
                ValidationRow(name, "stripes", expected, drawn, abs(drawn - expected), 0.5, "stored draw")
            )
    progress("table 6: 84 calibrations")
    each = np.abs(errors(stripes=stripes))
    means = np.nanmean(each, axis=1)
    name = "table 6: six rows from three, median of 84"
    result = [
        ValidationRow(
            name, "mean |error|", 0.0, float(np.median(means)), float(np.median(means)), LIMIT, SOURCE
        )
    ]
    everything = calibrate(TABLE, stripes=stripes)
    for row, value, error in zip(
        TABLE, predicted(TABLE, everything, stripes), np.nanmedian(each, axis=0), strict=True
    ):
        name = f"table 6: {row.file_mb} MB, {row.nodes:,} nodes (median error when predicted: {error:.1%})"
        result.append(relative(name, "GB/s", row.titan_gb_per_s, float(value), math.inf, SOURCE))
    sizes = TABLE if full else TABLE[:2]
    for row in sizes:
        progress(f"table 6: {row.file_mb} MB, {row.nodes:,} nodes in the simulator")
        value, held = simulated(row, everything, seed=1)
        formula = float(predicted([row], everything, {row.nodes: held})[0])
        name = f"table 6: {row.file_mb} MB, {row.nodes:,} nodes, simulator beside formula"
        result.append(relative(name, "GB/s", formula, value, 1e-3, "the formula, this draw's fullest OST"))
    return (*result, *placements)
