"""The evaluation scenarios (paper, section 7.2) as data, and what a policy makes of them over many seeds.

Cluster: 7 OSSs × 5 OSTs × 10 GB. Every scenario is a system view and the files that are created on it at
once; the judged metric is the OST cost unless the scenario says otherwise. Each result carries the lower
bound of its metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from statistics import median
from typing import Literal

import msgspec

from tarazu.allocate import bounds, quality
from tarazu.lustre import EOF
from tarazu.model import CreateRequest, Oss, Ost, SystemView
from tarazu.sim import proof
from tarazu.sim.allocation import policies
from tarazu.sim.model.striping import PFL_1, PFL_2, PLAIN, Striping, layout
from tarazu.sim.workloads.hacc import hacc_bytes
from tarazu.units import GIB

SERVERS, OSTS_PER_SERVER, OST_BYTES = 7, 5, 10 * 10**9
OST_BYTES_PER_S = 500 * 10**6
"""Throughput of a healthy OST in `slow-ost`; only the ratio matters."""
SEEDS = 20

AUTO = ((0, EOF, SERVERS * OSTS_PER_SERVER),)
"""A shared file over all OSTs: stripe count `auto`."""

Metric = Literal["ost-cost", "final-fill", "completion-time"]


class PaperScenario(msgspec.Struct, frozen=True):
    """One row of the evaluation."""

    name: str
    variant: str
    """`plain`, `auto`, `pfl-1`, `pfl-2`, or a mixture."""
    view: SystemView
    requests: tuple[CreateRequest, ...]
    metric: Metric = "ost-cost"


class ScenarioOutcome(msgspec.Struct, frozen=True):
    """What one policy reached in one scenario, over all seeds."""

    scenario: str
    variant: str
    policy: str
    metric: Metric
    seeds: int
    median: float
    lowest: float
    highest: float
    bound: float
    gap: float
    """Highest / bound."""
    oss_cost: float
    """Median of the OSS cost."""
    oss_highest: float
    oss_bound: float
    """Lower bound of the OSS cost, whatever the OST cost."""
    oss_bound_at_ost_bound: float
    """The same among placements whose OST cost is at its own bound: the two goals can exclude one another.
    Equal to `oss_bound` where another metric is judged.
    """
    elapsed_s: float
    """Median time of one allocation."""


def cluster(
    fill: Callable[[int], float] = lambda ost: 0.0,
    speed: Callable[[int], float | None] = lambda ost: None,
) -> SystemView:
    """The paper's cluster; `fill` is the used share, `speed` the known bytes/s of each OST."""
    osts = []
    for index in range(SERVERS * OSTS_PER_SERVER):
        free = OST_BYTES - int(OST_BYTES * fill(index))
        server = f"oss{index // OSTS_PER_SERVER + 1}"
        osts.append(Ost(index, server, OST_BYTES, free, free, write_bytes_per_s=speed(index)))
    return SystemView("lustre", 0.0, tuple(osts), tuple(Oss(f"oss{i + 1}") for i in range(SERVERS)))


def files(count: int, size_bytes: int, striping: Striping) -> tuple[CreateRequest, ...]:
    """`count` files of one size, sharing one layout."""
    return (CreateRequest(size_bytes, layout(striping, size_bytes)),) * count


@cache
def scenarios() -> tuple[PaperScenario, ...]:
    """All of them, in the order in which they are reported."""
    empty = cluster()
    variants = {"plain": PLAIN, "pfl-1": PFL_1, "pfl-2": PFL_2}
    sizes = {
        "ior-fpp-32": (16, 2 * GIB),
        "ior-fpp-128": (16, 8 * GIB),
        "hacc-fpp-8": (8, hacc_bytes(50 * 10**6)),
        "hacc-fpp-16": (16, hacc_bytes(20 * 10**6)),
    }
    rows = [
        PaperScenario(name, variant, empty, files(*shape, striping))
        for name, shape in sizes.items()
        for variant, striping in variants.items()
    ]
    for name, size in (("ior-ssf-8", 8 * GIB), ("ior-ssf-16", 16 * GIB)):
        for variant, striping in {"plain": PLAIN, "auto": AUTO, "pfl-1": PFL_1}.items():
            rows.append(PaperScenario(name, variant, empty, files(1, size, striping)))
    both = files(8, 8 * GIB, PFL_1) + files(8, hacc_bytes(50 * 10**6), PFL_2)
    rows.append(PaperScenario("mixed", "pfl-1 + pfl-2", empty, both))
    unequal = cluster(fill=lambda ost: 0.6 * ost / (SERVERS * OSTS_PER_SERVER - 1))
    slow = cluster(speed=lambda ost: OST_BYTES_PER_S / (10 if ost == 7 else 1))
    for variant, striping in variants.items():
        requests = files(16, 2 * GIB, striping)
        rows.append(PaperScenario("unequal-fill", variant, unequal, requests, "final-fill"))
        rows.append(PaperScenario("slow-ost", variant, slow, requests, "completion-time"))
    return tuple(sorted(rows, key=lambda s: s.metric != "ost-cost"))


def named(name: str, variant: str | None = None) -> tuple[PaperScenario, ...]:
    """Scenarios of that name, of one variant if given. Raises KeyError when there is none."""
    variants = tuple(s for s in scenarios() if s.name == name and variant in (None, s.variant))
    if not variants:
        raise KeyError(f"no scenario {name!r}" + (f" of variant {variant!r}" if variant else ""))
    return variants


def measure(scenario: PaperScenario, placed: dict[int, int]) -> float:
    """The judged metric of the bytes placed on each OST."""
    if scenario.metric == "final-fill":
        return quality.final_fill(scenario.view, placed)
    if scenario.metric == "completion-time":
        return quality.completion_time_s(scenario.view, placed)
    return quality.ost_cost(placed)


def bound(scenario: PaperScenario) -> float:
    """The lower bound of the judged metric."""
    lowest = {
        "final-fill": bounds.fill_bound,
        "completion-time": bounds.time_bound,
        "ost-cost": proof.utilization_bound,
    }
    return lowest[scenario.metric](scenario.view, scenario.requests)


@cache
def _bounds(name: str, variant: str) -> tuple[float, float, float]:
    """Of the judged metric, of the OSS cost, and of the OSS cost at the OST cost's bound."""
    (scenario,) = named(name, variant)
    lower = bound(scenario)
    oss = bounds.oss_bound(scenario.view, scenario.requests)
    if scenario.metric != "ost-cost":
        return lower, oss, oss
    return lower, oss, proof.oss_bound(scenario.view, scenario.requests, lower)


def run(scenario: PaperScenario, policy: str, seeds: Iterable[int] = range(SEEDS)) -> ScenarioOutcome:
    """A fresh policy for each seed, each placing all files at once; `scenario` is one of `scenarios()`."""
    values, oss_values, times = [], [], []
    for seed in seeds:
        allocation = policies.make(policy, seed=seed).allocate(scenario.view, scenario.requests)
        placed = quality.ost_bytes(scenario.view, scenario.requests, allocation.files)
        values.append(measure(scenario, placed))
        oss_values.append(quality.oss_cost(scenario.view, placed))
        times.append(allocation.elapsed_s)
    lower, oss_lower, oss_lower_there = _bounds(scenario.name, scenario.variant)
    return ScenarioOutcome(
        scenario.name,
        scenario.variant,
        policy,
        scenario.metric,
        len(values),
        median(values),
        min(values),
        max(values),
        lower,
        max(values) / lower,
        median(oss_values),
        max(oss_values),
        oss_lower,
        oss_lower_there,
        median(times),
    )


def table(
    names: Sequence[str] = policies.NAMES,
    seeds: Iterable[int] = range(SEEDS),
    only: Sequence[str] = (),
    progress: Callable[[str], object] = lambda text: None,
) -> tuple[ScenarioOutcome, ...]:
    """Every scenario under every policy in `names`.

    only: words of which one must occur in "name variant"; progress: called with each scenario and policy
    before it is run. Raises KeyError when `only` leaves nothing.
    """
    words = [word.lower() for word in only]
    chosen = [s for s in scenarios() if not words or any(w in f"{s.name} {s.variant}" for w in words)]
    if not chosen:
        raise KeyError(f"no scenario of {' or '.join(only)}")
    drawn = tuple(seeds)
    outcomes = []
    for scenario in chosen:
        for policy in names:
            progress(f"{scenario.name} {scenario.variant}: {policy}")
            outcomes.append(run(scenario, policy, drawn))
    return tuple(outcomes)
