"""Each allocator and placer of the paper does what the paper says."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.forwarding.application import Application, Resources, io_s
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.study.schedulers import (
    BestBandwidth,
    Knapsack,
    LeastStress,
    LeastStressed,
    RandomPlacement,
    RoundRobin,
    Static,
    Tcpu,
    choose,
)
from tarazu.parts.forwarding.tables import bandwidths, table
from tarazu.parts.forwarding.tcpu import ROUNDING
from tests.parts.forwarding.strategies import (
    applications,
    cpu_load,
    curves,
    io_load,
    io_stress,
    n_perf,
    n_sys,
    systems,
)

System = tuple[list[Application], Resources]
PROFILE = settings(max_examples=10, deadline=None, derandomize=True)
LEVEL = curve([(1, 1e9)])
TWENTY = Resources("io-node", 20, 480)


@PROFILE
@given(application=applications(), most=st.integers(1, 15))
def test_lemma_1(application: Application, most: int) -> None:
    assert 1 <= n_sys(application, most) <= n_perf(application, most) <= most


@PROFILE
@given(system=systems())
def test_the_table_says_what_the_functions_say(system: System) -> None:
    several, resources = system
    values = table(several, resources)
    for i, a in enumerate(several):
        assert bandwidths(a.curve, 15).tolist() == [a.curve.bandwidth(n) for n in range(1, 16)]
        assert values.n_perf[i] == n_perf(a, resources.count)
        assert values.n_sys[i] == n_sys(a, resources.count)
        for n in range(1, values.most + 1):
            assert values.io_s[i, n - 1] == io_s(a, n)
            assert values.stress[i, n - 1] == io_stress(a, n)
            assert values.cpu_load[i, n - 1] == cpu_load(a, n)


def literal(several: list[Application], resources: Resources) -> tuple[int, ...]:
    """Algorithm 1, line by line."""
    capacity = resources.count
    pi = [n_sys(a, capacity) for a in several]
    done = False
    while not done:
        tilde = list(pi)
        load_diff = [-1.0] * len(several)
        init_io_load = io_load(several, pi, resources)
        for i, a in enumerate(several):
            n = pi[i]
            best = n_perf(a, capacity)
            while n != best and load_diff[i] < 0:
                n += 1
                more = io_stress(a, n) / capacity - io_stress(a, pi[i]) / capacity
                if init_io_load + more <= 1 + ROUNDING:
                    load_diff[i] = cpu_load(a, n) - cpu_load(a, tilde[i])
                    tilde[i] = n
        idx = load_diff.index(max(load_diff))
        if load_diff[idx] < 0:
            done = True
        else:
            pi[idx] = tilde[idx]
    return tuple(pi)


@PROFILE
@given(system=systems())
def test_ta_is_algorithm_1(system: System) -> None:
    assert Tcpu().allocate(*system) == literal(*system)


@PROFILE
@given(
    shares=st.lists(st.floats(0.02, 0.9), min_size=4, max_size=10),
    shapes=st.lists(curves(), min_size=10, max_size=10),
    nodes=st.lists(st.integers(1, 100), min_size=10, max_size=10),
)
def test_ta_is_algorithm_1_where_the_system_is_nearly_saturated(shares, shapes, nodes) -> None:
    """I/O-load(π_sys) is brought near 1, where every step changes what the others may do."""
    several = [
        Application(str(i), nodes[i], shapes[i], 100 * (1 - s), 100 * s * shapes[i].bandwidth(1), 2)
        for i, s in enumerate(shares)
    ]
    resources = Resources("ost", max(2, round(sum(shares) * 1.3)), 480)
    found = Tcpu().allocate(several, resources)
    assert found == literal(several, resources)


@pytest.mark.parametrize(
    ("nodes", "expected"), [(1, 1), (24, 1), (35, 1), (36, 2), (60, 3), (480, 20), (9600, 20), (0, 1)]
)
def test_static_is_the_share_of_the_nodes(nodes: int, expected: int) -> None:
    level = curve([(1, 1e9)])
    assert Static().allocate([Application("a", nodes, level, 1, 1)], TWENTY) == (expected,)


def test_bba_and_nsysa() -> None:
    peak = curve([(1, 1e9), (2, 1.5e9), (4, 2e9), (8, 1e9)])
    steep = curve([(1, 1e9), (2, 4e9), (4, 5e9)])
    several = [Application("peak", 1, peak, 100, 1e11), Application("steep", 1, steep, 100, 1e11)]
    assert BestBandwidth().allocate(several, TWENTY) == (4, 4)
    assert LeastStress().allocate(several, TWENTY) == (1, 2)


@settings(PROFILE, max_examples=6)
@given(system=systems(largest=5), must=st.booleans())
def test_mckp_is_the_best_sum(system: System, must: bool) -> None:
    several, resources = system[0][:4], system[1]
    must = must and len(several) <= resources.count
    bandwidth = table(several, resources).bandwidth
    own = choose(bandwidth, resources.count, must)

    def worth(counts) -> float:
        return sum(float(row[min(n, len(row)) - 1]) for row, n in zip(bandwidth, counts) if n)

    every = [
        c
        for c in product(range(1 if must else 0, resources.count + 1), repeat=len(several))
        if sum(c) <= resources.count
    ]
    assert own.sum() <= resources.count
    assert worth(own.tolist()) >= max(map(worth, every)) - 4e-6 * float(bandwidth.max())


def test_mckp_gives_nodes_of_their_own_while_there_are_enough() -> None:
    several = [Application(str(i), 1, curve([(1, 1e9), (4, (i + 1) * 1e9)]), 1, 1e9) for i in range(6)]
    placed = Knapsack().schedule(several, Resources("io-node", 12, 480)).placed
    assert placed == ((0,), (1,), (2,), (3,), (4, 5, 6, 7), (8, 9, 10, 11))


def test_mckp_shares_one_node_among_the_rest() -> None:
    several = [Application(str(i), 1, curve([(1, (i + 1) * 1e9)]), 1, 1e9) for i in range(6)]
    placed = Knapsack().schedule(several, Resources("io-node", 3, 480)).placed
    assert placed == ((2,), (2,), (2,), (2,), (0,), (1,))


def alike(count: int, volume: float = 1e10) -> list[Application]:
    return [Application(str(i), 1, LEVEL, 10, volume) for i in range(count)]


def test_gnc_goes_round_with_the_widest_first() -> None:
    placed = RoundRobin().place(alike(3), (1, 3, 2), Resources("ost", 4, 480)).placed
    assert placed == ((1,), (0, 1, 2), (0, 3))


@PROFILE
@given(counts=st.lists(st.integers(1, 7), min_size=1, max_size=30))
def test_gnc_has_as_many_applications_on_each(counts: list[int]) -> None:
    placed = RoundRobin().place(alike(len(counts)), counts, Resources("ost", 7, 480)).placed
    on = [sum(r in p for p in placed) for r in range(7)]
    assert max(on) - min(on) <= 1


def test_gc_puts_what_is_most_in_io_on_the_least_stressed() -> None:
    heavy, light = Application("heavy", 1, LEVEL, 1, 1e12), Application("light", 1, LEVEL, 100, 1e9)
    placed = LeastStressed().place([light, heavy, light], (2, 1, 1), Resources("ost", 3, 480)).placed
    assert placed == ((1, 2), (0,), (1,))


def test_randp_reaches_every_resource() -> None:
    placed = RandomPlacement(1).place(alike(200), (2,) * 200, Resources("ost", 5, 480)).placed
    assert {r for p in placed for r in p} == set(range(5))
    assert len(set(placed)) == 10
