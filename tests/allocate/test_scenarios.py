"""Every scenario of the evaluation against its bound, Lustre's allocator and greedy; the sick OST."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from tarazu.allocate import quality, timing
from tarazu.config import Weights
from tarazu.lustre import EOF
from tarazu.sim import badost, scenarios
from tarazu.sim.allocation import policies
from tarazu.sim.workloads.hacc import hacc_bytes
from tarazu.units import GIB, MIB

SEEDS = range(3)
IDS = [f"{s.name}/{s.variant}" for s in scenarios.scenarios()]
LIMIT = {"ost-cost": 1.005, "completion-time": 1.15}
LIMIT_S = 1.25
OSS_LIMIT, OSS_ALIKE = 1.02, 1.002


def test_names_of_the_design() -> None:
    assert {s.name for s in scenarios.scenarios()} == {
        "ior-fpp-32", "ior-fpp-128", "hacc-fpp-8", "hacc-fpp-16", "ior-ssf-8", "ior-ssf-16", "mixed",
        "unequal-fill", "slow-ost",
    }  # fmt: skip
    assert len(IDS) == len(set(IDS))


@pytest.mark.parametrize(
    "scenario",
    [
        # To prove the bound of this one takes half a minute.
        pytest.param(s, marks=pytest.mark.long if (s.name, s.variant) == ("hacc-fpp-16", "pfl-2") else ())
        for s in scenarios.scenarios()
    ],
    ids=IDS,
)
def test_at_the_bound_and_never_worse_than_others(scenario: scenarios.PaperScenario) -> None:
    """Files whose parts are written one after another, or OSTs that differ in fill, are judged by the time alone."""
    view, requests = scenario.view, scenario.requests
    times = {
        name: [
            timing.time_s(view, requests, policies.make(name, seed).allocate(view, requests).files, Weights())
            for seed in SEEDS
        ]
        for name in ("tarazu", "lsa", "greedy")
    }
    assert max(times["tarazu"]) <= LIMIT_S * timing.bound_s(view, requests, Weights(), even=True)
    assert max(times["tarazu"]) <= min(*times["lsa"], *times["greedy"]) * (1 + 1e-9)
    if scenario.metric == "final-fill" or any(r.layout.composite for r in requests):
        return
    ours, lsa, greedy = (scenarios.run(scenario, policy, SEEDS) for policy in ("tarazu", "lsa", "greedy"))
    assert ours.lowest >= ours.bound * (1 - 1e-9)
    assert ours.gap <= LIMIT[scenario.metric]
    assert ours.highest <= greedy.lowest * (1 + 1e-9)
    assert ours.highest <= lsa.lowest * (1 + 1e-9)
    if scenario.metric == "ost-cost":
        assert ours.oss_highest <= lsa.oss_cost * OSS_ALIKE
        assert ours.oss_highest <= OSS_LIMIT * ours.oss_bound


@pytest.mark.parametrize(
    ("name", "variant", "expected"),
    [
        ("ior-fpp-32", "plain", 1.094),
        ("ior-fpp-32", "pfl-1", 1.025),
        ("ior-fpp-32", "pfl-2", 1.025),
        ("ior-ssf-8", "plain", 4.375),
        ("ior-ssf-16", "plain", 4.375),
    ],
)
def test_bounds_that_are_known(name: str, variant: str, expected: float) -> None:
    (scenario,) = scenarios.named(name, variant)
    assert scenarios.bound(scenario) == pytest.approx(expected, abs=0.001)


def test_the_papers_linear_costs_fill_the_cheapest_ost_first() -> None:
    (scenario,) = scenarios.named("unequal-fill", "plain")
    allocation = policies.make("tarazu-linear").allocate(scenario.view, scenario.requests)
    placed = quality.ost_bytes(scenario.view, scenario.requests, allocation.files)
    used = sorted(ost for ost, size in placed.items() if size)
    assert used == list(range(len(used)))
    assert len(used) < 5
    assert any(len(set(part)) < len(part) for file in allocation.files for part in file.osts)
    assert allocation.ost_cost > 5 * allocation.ost_cost_bound


def test_stripe_sizes_give_eight_rounds_or_are_the_smallest() -> None:
    for scenario in scenarios.scenarios():
        for request in scenario.requests:
            for component in request.layout.components[: request.layout.covered(request.size_bytes)]:
                end = min(component.end_bytes, request.size_bytes)
                rounds = (end - component.start_bytes) / (
                    component.stripe_size_bytes * component.stripe_count
                )
                assert rounds >= 8 or component.stripe_size_bytes == MIB
                assert component.stripe_size_bytes <= 64 * MIB
                assert component.end_bytes == EOF or component.end_bytes % component.stripe_size_bytes == 0


def test_sizes_of_hacc_add_up_to_the_papers() -> None:
    assert 8 * hacc_bytes(50 * 10**6) / GIB == pytest.approx(14.3, abs=0.05)
    assert 16 * hacc_bytes(20 * 10**6) / GIB == pytest.approx(11.7, abs=0.05)


def test_unknown_scenario_is_named() -> None:
    with pytest.raises(KeyError, match="'ior-fpp-64'"):
        scenarios.named("ior-fpp-64")


@pytest.fixture(scope="module")
def sick() -> badost.BadOstStudy:
    return badost.study(seeds=SEEDS)


def test_the_log_of_the_sick_ost(sick: badost.BadOstStudy) -> None:
    assert sick.logged_s == pytest.approx(728, abs=1)
    assert [row.ost for row in sick.rows] == list(range(24))
    assert sum(row.logged_bytes for row in sick.rows) == 2048 * 256 * MIB
    for row in sick.rows:
        if row.ost == 14:
            assert row.write_bytes_per_s == pytest.approx(31.4e6, rel=0.01)
        else:
            assert 1.4e9 < row.write_bytes_per_s < 2.0e9


def test_the_same_job_placed_again(sick: badost.BadOstStudy) -> None:
    assert median(sick.lsa_s) == pytest.approx(sick.logged_s, rel=0.02)
    assert max(sick.tarazu_s) <= 1.15 * sick.bound_s
    assert max(sick.tarazu_s) <= 20
    assert sum(row.tarazu_bytes for row in sick.rows) == 2048 * 256 * MIB
    slow = next(row for row in sick.rows if row.ost == 14)
    assert slow.tarazu_bytes < 0.05 * slow.lsa_bytes


def test_the_readmes_picture_says_what_was_measured(sick: badost.BadOstStudy) -> None:
    drawn = (Path(__file__).parents[2] / "docs" / "sick-ost.svg").read_text()
    said = (
        f"as logged: {sick.logged_s:.0f} s",
        f"files: {median(sick.tarazu_s):.1f} s",
        f"before {sick.bound_s:.1f} s",
    )
    assert all(words in drawn for words in said), "run `make docs`"
