"""The event-driven equal share beside the paper's alternation unit by unit."""

from __future__ import annotations

from functools import partial
from statistics import fmean

import numpy as np
import pytest

from tarazu.parts.forwarding.application import Schedule
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.study import workload
from tarazu.parts.forwarding.study.metrics import measure
from tests.parts.forwarding.study.alternate import alternate


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
