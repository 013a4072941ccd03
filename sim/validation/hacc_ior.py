"""HACC-IO and IOR side by side on the paper's cluster (sections 6.4 and 7.2.4), beside the real daemons' placement.

Judged: how full each OST is, in points of its size. Which OST is fullest is chance (Lustre's allocator begins
anywhere, equal OSTs are alike to tarazu), so OSTs are compared by rank: the fullest with the fullest, averaged over
runs. Shown, not judged: throughputs beside those that the paper's simulator had; nothing is calibrated on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.sim.model import presets
from tarazu.sim.model.outcome import Outcome
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Job
from tarazu.sim.validation import hacc_ior_testbed as testbed
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import Row, relative
from tarazu.sim.workloads import hacc, ior
from tarazu.units import GIB

Array = NDArray[np.float64]

LIMIT = 1.0
"""Points of an OST's size."""
SEEDS = {"lsa": 40, "tarazu": 3}
SHORT = {"lsa": 6, "tarazu": 1}
MEASURED_ANEW = {"lsa": 10, "tarazu": 1}
PAPER_MB_PER_S = {"lsa": (428.0, 529.0), "tarazu": (612.0, 490.0)}
"""Read, written: what the paper's simulator says."""
OST_BYTES = 10 * GIB
SEGMENTS = 16
"""Of each rank's IOR file: so many operations, so that its components get their objects one after another."""


def cluster() -> ClusterSpec:
    """The paper's, with OSTs as large as the testbed's."""
    return msgspec.structs.replace(presets.named("paper").spec, ost_bytes=OST_BYTES)


def simulate(policy: str, seed: int, layouts: dict[str, str] | None = None) -> Outcome:
    """Both applications write their files at once, then read them."""
    works = {
        "ior": ior.workload(ranks=testbed.RANKS, block_bytes=testbed.BYTES["ior"] // SEGMENTS, segments=SEGMENTS),
        "hacc": hacc.workload(ranks=testbed.RANKS, particles=testbed.PARTICLES),
    }
    jobs = [
        Job(work, striping=(layouts or testbed.LAYOUTS)[name], first_node=node)
        for node, (name, work) in enumerate(works.items())
    ]
    return Simulation(cluster(), policy, seed).run(jobs)


def by_rank(runs: Sequence[Sequence[int]]) -> Array:
    """Points of an OST's size, from the emptiest OST to the fullest, mean of the runs."""
    shares = np.sort(np.array(runs, float) / OST_BYTES, axis=1)
    result: Array = 100 * shares.mean(axis=0)
    return result


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[Row, ...]:
    """For both policies the greatest difference of any rank, and throughputs."""
    runs = list(testbed.stored())
    if full:
        runs += testbed.measure_all(progress, MEASURED_ANEW)
    found: list[Row] = []
    for policy, seeds in (SEEDS if full else SHORT).items():
        outcomes = []
        for seed in range(seeds):
            progress(f"HACC-IO and IOR under {policy}, {seed + 1} of {seeds}")
            outcomes.append(simulate(policy, seed))
        real = by_rank([run.ost_bytes for run in runs if run.policy == policy])
        ours = by_rank([[ost.placed_bytes for ost in outcome.osts] for outcome in outcomes])
        # Fewer seeds scatter more: the short form allows what six draws of this spread may differ by.
        limit = LIMIT if full or policy != "lsa" else 2 * LIMIT
        apart = float(np.abs(ours - real).max())
        worst = int(np.abs(ours - real).argmax())
        name = f"HACC + IOR, {policy}: OST of rank {worst + 1} of {len(real)}, furthest from the testbed's"
        source = "daemons on the testbed" if policy == "tarazu" else "the testbed's allocator"
        found.append(
            Row(name, "full, points", float(real[worst]), float(ours[worst]), apart, limit, source)
        )
        both = zip(
            ("read", "written"),
            PAPER_MB_PER_S[policy],
            (
                np.mean([o.read_bytes_per_s for o in outcomes]) / 1e6,
                np.mean([o.write_bytes_per_s for o in outcomes]) / 1e6,
            ),
            strict=True,
        )
        for what, paper, value in both:
            name = f"HACC + IOR, {policy}: {what}"
            found.append(relative(name, "MB/s", paper, float(value), math.inf, "paper's simulator, section 6.4"))
    return tuple(found)
