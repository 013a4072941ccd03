"""The study of slow disks in short, and what its generator is checked against."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.units import MIB
from tests.benchmarks.slow_osts import day, delay
from tests.benchmarks.slow_osts._disk import Disk, burst


@pytest.mark.parametrize("study", [day, delay], ids=["day", "delay"])
def test_slow_disks_are_seen_in_time_and_healthy_ones_never(study: object) -> None:
    figures = study.measure(short=True)  # type: ignore[attr-defined]
    assert [str(figure) for figure in figures if not figure.holds] == []


def test_generated_ios_are_as_the_captured_ones() -> None:
    # Two healthy OSTs of the captured run, 24 I/Os each: logarithms of the times with a standard deviation of 0.8 and
    # 1.0, means of 34 and 15 ms, 1.4 to 1.9 in flight.
    random = np.random.default_rng(0)
    load = burst(0.0, 24 * 4 * MIB)
    load = load._replace(at_s=np.cumsum(random.exponential(0.04, 24)))
    disks = [Disk(load, random) for _ in range(200)]
    spreads = [float(np.log(disk.taken_s).std()) for disk in disks]
    means = [float(np.mean(disk.taken_s)) for disk in disks]
    assert np.quantile(spreads, 0.25) >= 0.6 and np.quantile(spreads, 0.75) <= 1.3
    assert 2 <= np.quantile(means, 0.95) / np.quantile(means, 0.05) <= 10, "captured: 2.3 between two"
