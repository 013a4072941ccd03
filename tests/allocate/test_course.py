"""What a placement is judged by is what the simulator plays: one fluid network beside another."""

from __future__ import annotations

import math
from random import Random
from statistics import mean

import msgspec
import pytest

from tarazu.allocate import timing
from tarazu.config import Weights
from tarazu.sim.model import presets
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Job, ServiceCurve
from tarazu.sim.workloads import hacc, ior
from tarazu.sim.workloads.workload import Workload
from tarazu.units import GIB
from tests.benchmarks.time import estimates
from tests.benchmarks.time.bound import bound_s
from tests.benchmarks.time.grid import LAYOUTS

EXACT = 0.05
DISK = presets.named("paper").spec.write
FLASH = ServiceCurve(peak_bytes_per_s=150e6)
"""Any number of streams alike, one as fast as all: not as the estimate takes it."""


def cluster(link: float, disk: ServiceCurve = DISK) -> ClusterSpec:
    return msgspec.structs.replace(
        presets.named("paper").spec,
        ost_bytes=10**11, write=disk, read=disk, nodes=8, nic_bytes_per_s=10e9,
        lnet_router_bytes_per_s=math.inf, oss_link_bytes_per_s=link, create_s=0.0,
    )  # fmt: skip


def program(name: str) -> Workload:
    if name == "hacc":
        return hacc.workload(ranks=16, particles=20_000_000)
    shared = name == "shared"
    return ior.workload(
        ranks=8, ranks_per_node=4, block_bytes=2 * GIB, segments=1, shared=shared,
        interface="MPIIO" if shared else "POSIX",
    )  # fmt: skip


every_case = pytest.mark.parametrize(
    ("name", "layout", "link"),
    [(n, k, link) for n in ("ior", "hacc", "shared") for k in LAYOUTS for link in (117e6, 10e9)],
)


@every_case
def test_the_estimate_of_a_placement_is_what_the_simulator_plays(name: str, layout: str, link: float) -> None:
    spec, job = cluster(link), Job(program(name), striping=LAYOUTS[layout])
    expected_s, played_s = estimates.placed(spec, job, 3)
    assert expected_s == pytest.approx(played_s, rel=EXACT)
    simulated = Simulation(spec, "tarazu", 3)
    requests = estimates.requests_of(job, spec.osts)
    assert expected_s >= timing.bound_s(estimates.view_of(simulated), requests, Weights()) * (1 - 1e-6)


@every_case
def test_lustres_own_is_expected_as_the_simulator_plays_it(name: str, layout: str, link: float) -> None:
    expected_s, played_s = estimates.lustres(cluster(link), Job(program(name), striping=LAYOUTS[layout]), 4)
    assert expected_s == pytest.approx(played_s, rel=EXACT)


@pytest.mark.parametrize("seed", range(6))
def test_a_placed_job_is_never_slower_than_lustres_own(seed: int) -> None:
    """Programs, layouts and fills that no figure was made with."""
    random = Random(seed)
    spec = cluster(random.choice((117e6, 300e6, 10e9)), random.choice((DISK, FLASH)))
    full = random.choice((0.0, 0.1, 0.3))
    spec = msgspec.structs.replace(spec, used=tuple(random.uniform(0, full) for _ in range(spec.osts)))
    work = ior.workload(
        ranks=random.randint(3, 24),
        ranks_per_node=6,
        block_bytes=random.randint(1, 12) * GIB // 16,
        segments=random.choice((1, 4, 16)),
    )
    ends = sorted(random.sample((64, 128, 256, 512, 1024), 2))
    layout = random.choice(
        (
            f"-c {random.randint(1, 12)} -S {random.choice((1, 4))}M",
            f"-E {ends[0]}M -c 1 -S 1M -E {ends[1]}M -c 4 -E -1 -c 11",
        )
    )
    times = {
        policy: mean(
            job.end_s
            for at in range(3)
            for job in Simulation(spec, policy, at).run([Job(work, striping=layout)]).jobs
        )
        for policy in ("lsa", "tarazu")
    }
    assert times["tarazu"] <= 1.02 * times["lsa"]
    assert times["tarazu"] >= bound_s(spec, [Job(work, striping=layout)]) * (1 - 1e-6)
