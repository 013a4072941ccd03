"""The event-driven equal share beside the paper's alternation unit by unit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean

import numpy as np
import pytest
import simpy

from tarazu.parts.forwarding.application import Schedule
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.study import workload
from tarazu.parts.forwarding.study.metrics import ScheduledApplication, measure, observe
from tarazu.sim.kernel.network import Network
from tests.parts.forwarding.study.alternate import alternate

RESOURCES = 3


def on_the_network(jobs: Sequence[ScheduledApplication], until: float) -> tuple[list[int], list[float]]:
    """Whole phases and their I/O seconds as flows on SimPy's clock, each transfer one over a link of 1 s a second."""
    env = simpy.Environment()
    network = Network(env)
    links = [network.link(1.0) for _ in range(RESOURCES)]
    phases, whole = [0] * len(jobs), [0.0] * len(jobs)

    def application(number: int, job: ScheduledApplication) -> simpy.events.ProcessGenerator:
        while True:
            yield env.timeout(job.compute_s)
            began = env.now
            yield env.all_of([network.start([links[at]], None, job.io_s) for at in job.resources])
            phases[number] += 1
            whole[number] += env.now - began

    for number, job in enumerate(jobs):
        env.process(application(number, job))
    env.run(until)
    return phases, whole


def test_applications_do_what_they_do_as_flows_on_the_kernels_network() -> None:
    random = np.random.default_rng(1)
    for _ in range(5):
        jobs = [
            ScheduledApplication(
                float(random.uniform(1, 40)),
                float(random.uniform(1, 20)),
                tuple(random.permutation(RESOURCES)[: random.integers(1, RESOURCES + 1)].tolist()),
            )
            for _ in range(8)
        ]
        seen = observe(jobs, RESOURCES, 600.0)
        phases, whole = on_the_network(jobs, seen.interval_s)
        assert seen.phases == tuple(phases)
        assert sum(phases) > 30
        assert seen.whole_io_s == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize(("unit_s", "limit"), [(1.0, 0.02), (0.25, 0.005)])
def test_metrics_agree_the_better_the_shorter_the_unit(unit_s: float, limit: float) -> None:
    among = workload.resources("ost")
    curves = [curve([(1, 1.0), (2, 1.8), (4, 3.0)]), curve([(1, 2.0)]), curve([(1, 1.0), (4, 0.7)])]
    apart = []
    for seed in range(2):
        one = workload.generate(curves, 40, 0.8, seed, among)
        random = np.random.default_rng(seed)
        placed = tuple(tuple(random.permutation(20)[: random.choice([1, 2, 4])].tolist()) for _ in range(40))
        shared = measure(one.applications, Schedule(placed), among)
        alternated = measure(
            one.applications, Schedule(placed), among, simulator=partial(alternate, unit_s=unit_s)
        )
        apart.append(alternated.mean_slowdown / shared.mean_slowdown - 1)
        assert alternated.idletime == pytest.approx(shared.idletime, rel=limit)
        assert alternated.occupancy == pytest.approx(shared.occupancy, abs=0.02)
    assert abs(fmean(apart)) < limit
