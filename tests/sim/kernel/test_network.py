"""The network on SimPy's clock: when flows end, what links carried, and that time always goes on or ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import simpy
from numpy.typing import NDArray

from tarazu.errors import TarazuError
from tarazu.sim.kernel.network import Network


def ends(network: Network, *events: simpy.Event) -> list[float]:
    """Runs until all have ended; when each did."""
    network.run(simpy.AllOf(network.env, events))
    return [float(event.value) for event in events]


@pytest.fixture
def network() -> Network:
    return Network(simpy.Environment())


def test_flows_share_a_link_and_the_rest_goes_faster_when_one_ends(network: Network) -> None:
    link = network.link(10.0)
    short, long = network.start([link], None, 50.0), network.start([link], None, 100.0)
    assert ends(network, short, long) == pytest.approx([10.0, 15.0], rel=1e-12)
    assert network.carried()[link] == pytest.approx(150.0)
    assert network.streams().tolist() == [0]


def test_a_flow_without_links_or_amount_ends_at_once(network: Network) -> None:
    free = network.link(math.inf)
    assert ends(network, network.start([], None, 5.0), network.start([free], None, 5.0)) == [0.0, 0.0]
    assert ends(network, network.start([free], None, 0.0)) == [0.0]
    assert network.carried()[free] == 5.0


def test_many_flows_that_start_at_one_time_cost_one_sharing(network: Network) -> None:
    links = [network.link(1.0) for _ in range(50)]
    events = [network.start([links[n % 50]], None, 1.0) for n in range(1000)]
    assert ends(network, *events) == pytest.approx([20.0] * 1000, rel=1e-12)
    assert network.sharings == 1


def test_a_link_without_capacity_holds_flows_until_it_has_some(network: Network) -> None:
    link = network.link(10.0)

    def failure() -> simpy.events.ProcessGenerator:
        yield network.env.timeout(2.0)
        network.set_capacity(link, 0.0)
        yield network.env.timeout(5.0)
        assert network.stands_still
        assert network.carried()[link] == pytest.approx(20.0)
        network.set_capacity(link, 5.0)

    network.env.process(failure())
    assert ends(network, network.start([link], None, 100.0)) == pytest.approx([23.0], rel=1e-12)


def test_a_network_that_can_never_go_on_says_so(network: Network) -> None:
    dead = network.link(0.0, "OST 3")
    event = network.start([dead], None, 1.0)
    with pytest.raises(TarazuError, match=r"1 flows never finish from 0 s on: no capacity on OST 3"):
        network.run(event)


def test_the_service_curve_counts_streams(network: Network) -> None:
    link = network.link(12.0, curve=lambda n: 1 / (1 + 0.5 * (n - 1)))
    assert ends(network, network.start([link], None, 12.0)) == pytest.approx([1.0])
    assert ends(network, network.start([link], None, 12.0, streams=3)) == pytest.approx([3.0])
    both = network.start([link], None, 4.0), network.start([link], None, 8.0)
    assert ends(network, *both) == pytest.approx([3 + 1, 3 + 1 + 4 / 12], rel=1e-12)


def test_short_flows_late_on_the_clock_take_as_long_as_early_ones() -> None:
    network = Network(simpy.Environment(1e5))
    link = network.link(1.0)
    network.set_capacity(link, 2.0)
    assert ends(network, network.start([link], None, 2e-3)) == pytest.approx([1e5 + 1e-3], abs=1e-10)


def test_slots_are_used_again(network: Network) -> None:
    links = [network.link(1.0) for _ in range(40)]

    def rank(number: int) -> simpy.events.ProcessGenerator:
        rng = np.random.default_rng(number)
        for _ in range(40):
            yield network.start(rng.choice(links, 1 + number % 3, replace=False), None, float(rng.random()))

    network.run(simpy.AllOf(network.env, [network.env.process(rank(n)) for n in range(20)]))
    flows = network._flows
    assert len(flows.rows) <= 21 and flows._entries <= 3 * 21 * 3, "as many as were under way at once"


@pytest.mark.parametrize("resolution_s", [0.0, 0.01])
def test_the_same_calls_give_the_same_times_bit_for_bit(resolution_s: float) -> None:
    def once() -> list[tuple[float, int]]:
        network = Network(simpy.Environment(), resolution_s)
        links = [network.link(1.0 + n / 7, curve=lambda n: 1 / (1 + 0.01 * (n - 1))) for n in range(12)]
        seen: list[tuple[float, int]] = []

        def rank(number: int) -> simpy.events.ProcessGenerator:
            rng = np.random.default_rng(number % 5)  # ties: five kinds of ranks do the same
            for _ in range(5):
                yield network.start(rng.choice(links, 3), rng.random(3), float(rng.integers(1, 3)))
                seen.append((network.env.now, number))

        network.run(simpy.AllOf(network.env, [network.env.process(rank(n)) for n in range(20)]))
        return seen

    first = once()
    assert first == once()
    assert len(first) == 100


def test_flows_that_end_together_end_in_the_order_of_their_starts(network: Network) -> None:
    a, b = network.link(1.0), network.link(2.0)
    order: list[int] = []
    for number, (link, amount) in enumerate([(b, 2.0), (a, 1.0), (b, 2.0), (a, 1.0)]):
        network.start([link], None, amount).callbacks.append(lambda _, number=number: order.append(number))
    network.env.run()
    assert order == [0, 1, 2, 3]


@cache
def study(resolution_s: float, look: Callable[[Network], None] | None = None) -> NDArray[np.float64]:
    """60 ranks write four files each, about 1 s long, over 4 of 40 links; all meet after every file. Ends (60, 4)."""
    network = Network(simpy.Environment(), resolution_s)
    for _ in range(40):
        network.link(1.0)
    rng = np.random.default_rng(7)
    chosen, amounts = rng.integers(0, 40, (4, 60, 4)), rng.uniform(0.3, 1.0, (4, 60))
    ends = np.zeros((60, 4))

    def rank(number: int, file: int) -> simpy.events.ProcessGenerator:
        for _ in range(2):
            yield network.start(chosen[file, number], np.full(4, 0.25), amounts[file, number] / 2)
        ends[number, file] = network.env.now

    def job() -> simpy.events.ProcessGenerator:
        for file in range(4):
            yield simpy.AllOf(network.env, [network.env.process(rank(n, file)) for n in range(60)])

    def looks() -> simpy.events.ProcessGenerator:
        while True:
            yield network.env.timeout(0.05)
            if look:
                look(network)

    network.env.process(looks())
    network.run(network.env.process(job()))
    return ends


@pytest.mark.parametrize(("resolution_s", "highest"), [(0.01, 0.01), (0.1, 0.03), (1e6, 0.03)])
def test_a_coarse_resolution_changes_ends_by_little(resolution_s: float, highest: float) -> None:
    exact, coarse = study(0.0), study(resolution_s)
    assert np.abs(coarse / exact - 1).mean() < highest
    assert abs(coarse.max() / exact.max() - 1) < highest


def test_at_a_coarse_resolution_no_link_carries_half_more_than_it_can() -> None:
    seen: list[NDArray[np.float64]] = [np.zeros(40)]
    study(1e6, lambda network: seen.append(network.carried()))
    rates = np.diff(seen, axis=0) / 0.05
    assert 0.9 < rates.max() < 1.52
    assert (np.diff(seen, axis=0) > -1e-9).all()


def test_at_a_coarse_resolution_failures_and_lone_flows_are_not_waited_for() -> None:
    network = Network(simpy.Environment(), 1e6)
    links = [network.link(1.0) for _ in range(30)]
    free = network.link(math.inf)
    flows = [network.start([link], None, 10.0) for link in links]

    def later() -> simpy.events.ProcessGenerator:
        yield network.env.timeout(2.0)
        network.set_capacity(links[0], 0.5)
        assert (yield network.start([free], None, 7.0)) == 2.0
        assert (yield network.start([free], None, 7.0, 7.0)) == 3.0

    network.env.process(later())
    assert ends(network, *flows) == pytest.approx([18.0] + [10.0] * 29, rel=1e-9)


def test_bad_flows_and_links_are_refused(network: Network) -> None:
    link = network.link(1.0)
    for arguments in (
        ([7], None, 1.0),
        ([link], [-1.0], 1.0),
        ([link], [1.0, 2.0], 1.0),
        ([link], None, -1.0),
    ):
        with pytest.raises(ValueError, match="expected"):
            network.start(*arguments)
    with pytest.raises(ValueError, match="capacity >= 0"):
        network.set_capacity(link, -1.0)
    with pytest.raises(ValueError, match="seconds >= 0"):
        Network(simpy.Environment(), -1.0)
