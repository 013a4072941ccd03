"""Sets of applications: the formulae of section 5.3 exactly, and its invariant over many sets."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.forwarding.application import io_s
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.study import workload
from tests.parts.forwarding.strategies import io_load, io_stress

CURVES = [
    curve([(1, 100.0), (2, 150.0), (8, 400.0)]),
    curve([(1, 2e9), (4, 1e9), (8, 5e8)]),
    curve([(1, 3e8), (2, 6e8), (4, 8e8), (8, 4e8)]),
    curve([(1, 5e6)]),
]
AMONG = workload.resources("io-node")


@given(st.floats(0.001, 0.9999))
def test_the_bound_of_the_ratio_solves_its_equation(share: float) -> None:
    bound = workload.ratio_bound(share)
    assert math.log1p(bound) == pytest.approx(bound * share, rel=1e-6)
    assert bound > 0


@given(st.integers(1, 480))
def test_all_have_nodes_and_none_too_many(count: int) -> None:
    found = workload.nodes_of(count, 480)
    assert len(found) == count
    assert min(found) >= 1
    assert sum(found) <= 480
    assert found == sorted(found, reverse=True)


def test_a_tenth_of_the_applications_has_three_quarters_of_the_nodes() -> None:
    assert workload.nodes_of(40, 480) == [90] * 4 + [8] * 12 + [1] * 24
    assert workload.nodes_of(20, 480) == [180] * 2 + [16] * 6 + [2] * 12


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 1.9), st.integers(0, 1000))
def test_what_holds_for_each_application_of_a_set(theta: float, seed: int) -> None:
    found = workload.generate(CURVES, 40, theta, seed, AMONG)
    bound = workload.ratio_bound(theta * 20 / 40)
    for application, number in zip(found.applications, found.curves, strict=True):
        alone_s = io_s(application, 1)
        assert application.cpu_s + alone_s == pytest.approx(5000.0), "the common horizon"
        assert application.cpu_s / alone_s <= bound * (1 + 1e-9)
        assert 2 <= application.phases <= 20
        assert application.curve == CURVES[number]
    assert found == workload.generate(CURVES, 40, theta, seed, AMONG), "a seed gives one set"


@pytest.mark.parametrize("theta", [0.3, 1.5])
def test_the_load_of_one_resource_each_is_theta_in_expectation(theta: float) -> None:
    """Over 250 sets: within four standard errors, and those are small."""
    sets = [workload.generate(CURVES, 40, theta, seed, AMONG) for seed in range(250)]
    loads = [io_load(one.applications, [1] * 40, AMONG) for one in sets]
    error = stdev(loads) / math.sqrt(len(loads))
    assert error < 0.015
    assert abs(fmean(loads) - theta) < 4 * error
    stresses = [io_stress(a, 1) for one in sets for a in one.applications]
    assert fmean(stresses) == pytest.approx(theta * 20 / 40, abs=4 * error)


def test_sets_of_a_level_have_its_load() -> None:
    for level in (0.1, 0.5, 1.0):
        sets = workload.sets_at(level, CURVES, "ost", 5)
        assert len({one.seed for one in sets}) == 5
        assert all(abs(workload.least_load(one, "ost") - level) <= 0.05 for one in sets)
        assert sets == workload.sets_at(level, CURVES, "ost", 5)
