"""Bounds and costs: against brute force on tiny instances, and against figures worked out by hand."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import numpy as np
import pytest

from tarazu.allocate import bounds, dealing, eligible, packing, quality
from tarazu.allocate.problem import build
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, FilePlacement, Layout, Ost, SystemView
from tarazu.sim import proof
from tarazu.sim.allocation import policies
from tarazu.units import GIB, MIB


def single(size: int) -> CreateRequest:
    return CreateRequest(size, Layout((Component(0, EOF, MIB, 1),)))


def test_equal_stripes_by_counting(make) -> None:
    view = make.view(35, per_server=5)
    assert bounds.utilization_bound(view, [make.plain(8, 2 * GIB)] * 16) == pytest.approx(4 * 35 / 128)
    assert bounds.utilization_bound(view, [make.plain(8, 8 * GIB)]) == pytest.approx(4.375)
    assert bounds.utilization_bound(view, [make.plain(35, 35 * GIB)]) == pytest.approx(1)
    assert bounds.oss_bound(view, [make.plain(8, 2 * GIB)] * 16) == pytest.approx(19 * 7 / 128)
    assert bounds.utilization_bound(view, []) == 1


def brute_force(osts: int, sizes: list[int], level) -> float:
    """Lowest highest level over all assignments of single-stripe files."""
    best = float("inf")
    for chosen in product(range(osts), repeat=len(sizes)):
        placed = [0] * osts
        for ost, size in zip(chosen, sizes):
            placed[ost] += size
        best = min(best, max(level(i, b) for i, b in enumerate(placed)))
    return best


@pytest.mark.parametrize("case", range(25))
def test_never_above_and_for_equal_osts_at_the_true_optimum(case: int) -> None:
    random = Random(case)
    sizes = [random.randint(1, 6) * 64 * MIB for _ in range(random.randint(3, 7))]
    targets = [
        Ost(i, f"oss{i}", total := random.choice((10, 20)) * GIB, free := total - random.randint(0, 4) * GIB, free,
            write_bytes_per_s=random.choice((1e8, 3e8, 5e8)))
        for i in range(3)
    ]  # fmt: skip
    view = SystemView("lustre", 0.0, tuple(targets))
    requests = [single(s) for s in sizes]
    mean = sum(sizes) / 3
    exact = brute_force(3, sizes, lambda i, b: b / mean)
    assert proof.utilization_bound(view, requests) == pytest.approx(exact, rel=3e-4)
    assert proof.utilization_bound(view, requests) <= exact * (1 + 1e-9)
    time = brute_force(3, sizes, lambda i, b: b / targets[i].write_bytes_per_s)
    assert bounds.time_bound(view, requests) <= time * (1 + 1e-9)
    assert bounds.time_bound(view, requests) >= 0.5 * time
    fill = brute_force(3, sizes, lambda i, b: (targets[i].used_bytes + b) / targets[i].total_bytes)
    filled = sum(o.used_bytes for o in targets) + sum(sizes)
    fill /= filled / sum(o.total_bytes for o in targets)
    assert bounds.fill_bound(view, requests) <= fill * (1 + 1e-9)


@pytest.mark.parametrize("case", range(25))
def test_exact_search_reaches_what_it_proves(case: int) -> None:
    """Few large objects of several sizes on equal OSTs: where moves and swaps alone get stuck."""
    random = Random(100 + case)
    osts = random.randint(4, 20)
    view = SystemView(
        "lustre", 0.0, tuple(Ost(i, f"oss{i // 4}", 10**13, 10**13, 10**13) for i in range(osts))
    )
    requests = []
    for _ in range(random.randint(1, 3)):
        stripes = random.randint(1, min(4, osts))
        size = stripes * random.randint(7, 19) * 16 * MIB
        request = CreateRequest(size, Layout((Component(0, EOF, 16 * MIB, stripes),)))
        requests += [request] * random.randint(4, 12)
    allocation = policies.make("tarazu", seed=case).allocate(view, requests)
    assert allocation.ost_cost <= 1.005 * proof.utilization_bound(view, requests)
    for file in allocation.files:
        assert all(len(set(part)) == len(part) for part in file.osts)


def test_dealing_gives_every_member_distinct_osts(make) -> None:
    """Two sizes within each file, OSTs that hold as many objects as there are files."""
    request = CreateRequest(5 * 16 * MIB, Layout((Component(0, EOF, 16 * MIB, 3),)))
    problem = build(make.view(5), [request] * 4)
    objects = packing.objects_of(problem, np.array([16 * MIB, 32 * MIB]))
    assert objects.counts.tolist() == [4, 8]
    filled = [[1, 3], [2, 2], [1, 2], [0, 1], [0, 0]]
    (osts,) = dealing.deal(objects, np.array(filled)) or pytest.fail("not dealt")
    assert all(len(set(row)) == 3 for row in osts.tolist())
    for ost, (small, large) in enumerate(filled):
        weights = problem.groups[0].weights[osts == ost].tolist()
        assert weights.count(16 * MIB) == small
        assert weights.count(32 * MIB) == large


def test_pools_alone_can_bind(make) -> None:
    view = make.view(10, each=lambda i: {"pools": ("flash",)} if i < 2 else {})
    requests = [make.plain(1, GIB, pool="flash")] * 8 + [make.plain(1, GIB)] * 2
    assert bounds.utilization_bound(view, requests) == pytest.approx(4)
    assert policies.make("tarazu").allocate(view, requests).ost_cost == pytest.approx(4)


def test_bound_is_not_above_what_a_small_pool_reaches(make) -> None:
    """Three files over all four OSTs of a pool: 3 objects on each, far above the mean of all ten OSTs."""
    view = make.view(10, each=lambda i: {"pools": ("flash",)} if i >= 6 else {})
    for size in (0, 4 * GIB):
        requests = [make.plain(4, size, pool="flash")] * 3
        allocation = policies.make("tarazu").allocate(view, requests)
        assert allocation.ost_cost == pytest.approx(2.5)
        assert allocation.ost_cost_bound == pytest.approx(2.5)


@pytest.mark.parametrize("case", range(30))
def test_bounds_hold_for_striped_files_in_pools(case: int) -> None:
    """Two to four files with stripes on five OSTs, three of them a pool, against every possible placement."""
    random = Random(500 + case)
    targets = [Ost(i, f"oss{i // 2}", 10**12, 10**12, 10**12, pools=("p",) * (i < 3)) for i in range(5)]
    view = SystemView("lustre", 0.0, tuple(targets))
    requests, choices, weights = [], [], []
    for _ in range(random.randint(2, 4)):
        pool, stripes = random.choice(("", "p")), random.randint(1, 3)
        size = stripes * random.randint(1, 5) * 16 * MIB
        requests.append(CreateRequest(size, Layout((Component(0, EOF, 16 * MIB, stripes, pool=pool),))))
        choices.append(list(combinations(range(3 if pool else 5), stripes)))
        weights.append(size // stripes)
    best = float("inf")
    for chosen in product(*choices):
        placed = [0] * 5
        for osts, weight in zip(chosen, weights):
            for ost in osts:
                placed[ost] += weight
        best = min(best, max(placed) * 5 / sum(placed))
    assert proof.utilization_bound(view, requests) <= best * (1 + 1e-9)
    assert policies.make("tarazu").allocate(view, requests).ost_cost >= best * (1 - 1e-9)


def test_oss_bound_under_an_ost_cost() -> None:
    """Six equal OSTs on two servers, nine objects in sizes 3 and 2: with at most 5 per OST a server holds 12
    of 23.
    """
    view = SystemView("lustre", 0.0, tuple(Ost(i, f"oss{i // 3}", 10**13, 10**13, 10**13) for i in range(6)))
    requests = [single(3 * GIB)] * 5 + [single(2 * GIB)] * 4
    free = bounds.oss_bound(view, requests)
    assert free == pytest.approx(12 / 11.5)
    assert proof.oss_bound(view, requests, ost_cost=5 * 6 / 23) >= free * (1 - 1e-9)


def test_costs_by_hand(make) -> None:
    view = make.view(
        4, per_server=2, each=lambda i: {"used": i * GIB, "write_bytes_per_s": 1e9 if i else 5e8}
    )
    requests = [make.plain(2, 4 * GIB), make.plain(1, 2 * GIB)]
    files = [FilePlacement(((0, 1),)), FilePlacement(((1,),))]
    placed = quality.ost_bytes(view, requests, files)
    assert placed == {0: 2 * GIB, 1: 4 * GIB, 2: 0, 3: 0}
    assert quality.ost_cost(placed) == pytest.approx(4 / 1.5)
    assert quality.oss_cost(view, placed) == pytest.approx(2)
    assert quality.completion_time_s(view, placed) == pytest.approx(2 * GIB / 5e8)
    assert quality.final_fill(view, placed) == pytest.approx(5 / 3)


def test_unknown_speeds_are_the_median_of_the_known(make) -> None:
    view = make.view(4, each=lambda i: {"write_bytes_per_s": [1e8, None, 3e8, 9e8][i]})
    assert eligible.speeds(view.osts) == [1e8, 3e8, 3e8, 9e8]
    assert eligible.speeds(make.view(2).osts) == [1, 1]


def test_time_and_its_bound_take_unknown_speeds_from_the_same_osts(make) -> None:
    """The only OST with a known speed may not be used; the others count as that fast all the same."""
    view = make.view(4, each=lambda i: {"no_create": True, "write_bytes_per_s": 1e8} if i == 3 else {})
    requests = [make.plain(1, GIB)]
    files = policies.make("tarazu").allocate(view, requests).files
    reached = quality.completion_time_s(view, quality.ost_bytes(view, requests, files))
    assert bounds.time_bound(view, requests) == pytest.approx(reached) == pytest.approx(GIB / 1e8)
