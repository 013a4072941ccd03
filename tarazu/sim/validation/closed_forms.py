"""What the kernel must get exactly: cases whose times follow from a formula on paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import simpy

from tarazu.sim.kernel.network import Network
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow, relative

LIMIT = 1e-9


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[ValidationRow, ...]:
    """The same in both forms, without anything to tell: each case run in a network of its own, exactly."""
    return tuple(
        relative(f"closed form: {name}", f"{quantity}, s", expected, found, LIMIT, formula)
        for name, formula, case in CASES
        for quantity, expected, found in case(Network(simpy.Environment()))
    )


Found = Iterator[tuple[str, float, float]]
"""Quantity, expected and found seconds."""


def _later(network: Network, delay_s: float, action: Callable[[], object]) -> simpy.Process:
    """Does it at `delay_s`; if that gives an event, waits for it. The process's value is the time then."""

    def process() -> simpy.events.ProcessGenerator:
        yield network.env.timeout(delay_s)
        result = action()
        if isinstance(result, simpy.Event):
            yield result
        return network.env.now

    return network.env.process(process())


def _ends(network: Network, *events: simpy.Event) -> list[float]:
    network.run(simpy.AllOf(network.env, events))
    return [float(event.value or 0.0) for event in events]


def _one_flow(network: Network) -> Found:
    bytes_, links = 7e9, [network.link(capacity) for capacity in (3e9, 1.1e9, 2e9)]
    (end,) = _ends(network, network.start(links, None, bytes_))
    yield "end", bytes_ / 1.1e9, end


def _equal_flows(network: Network) -> Found:
    capacity, bytes_ = 1.3e9, 2e9
    link = network.link(capacity)
    for count in (2, 7, 1000):
        began = network.env.now
        ends = _ends(network, *(network.start([link], None, bytes_) for _ in range(count)))
        yield f"last end of {count}", count * bytes_ / capacity, max(ends) - began
        yield f"first end of {count}", count * bytes_ / capacity, min(ends) - began


def _unequal_flows(network: Network) -> Found:
    """Sizes s1 <= s2 <= ...: flow k ends (n - k + 1) * (sk - s(k-1)) / C after flow k - 1."""
    capacity, sizes = 3.0, [1.0, 2.5, 2.5, 7.0, 11.0]
    link = network.link(capacity)
    ends = _ends(network, *(network.start([link], None, size) for size in sizes))
    expected, before = 0.0, 0.0
    for k, (size, end) in enumerate(zip(sizes, ends)):
        expected += (len(sizes) - k) * (size - before) / capacity
        before = size
        yield f"end of flow {k + 1}", expected, end


def _two_bottlenecks(network: Network) -> Found:
    """One flow on the narrow and the wide link; on the wide one another, which gets what the first leaves."""
    narrow, wide, bytes_ = 2.0, 10.0, 40.0
    a, b = network.link(narrow), network.link(wide)
    both, other = _ends(network, network.start([a, b], None, bytes_), network.start([b], None, bytes_))
    yield "end over both links", bytes_ / narrow, both
    yield "end over the wide link", bytes_ / (wide - narrow), other


def _parking_lot(network: Network) -> Found:
    """Over three links in a row of capacity C a long flow, on each one short flow: all at C / 2."""
    capacity, bytes_ = 3.0, 5.0
    links = [network.link(capacity) for _ in range(3)]
    long = network.start(links, None, bytes_)
    ends = _ends(network, long, *(network.start([link], None, bytes_ / 2) for link in links))
    yield "end of the short flows", bytes_ / capacity, ends[1]
    yield "end of the long flow", bytes_ / capacity + bytes_ / 2 / capacity, ends[0]


def _staggered(network: Network) -> Found:
    """The second comes at t, the third at 2 t: alone, then in pairs, then three."""
    capacity, t = 6.0, 1.0
    link = network.link(capacity)
    sizes = [18.0, 18.0, 18.0]
    flows = [_later(network, k * t, lambda k=k: network.start([link], None, sizes[k])) for k in range(3)]  # type: ignore[misc]
    ends = _ends(network, *flows)
    first = 2 * t + (sizes[0] - capacity * t - capacity / 2 * t) * 3 / capacity
    served = capacity / 2 * t + (first - 2 * t) * capacity / 3
    second = first + (sizes[1] - served) * 2 / capacity
    yield "end of the first", first, ends[0]
    yield "end of the second", second, ends[1]
    yield "end of the third", sum(sizes) / capacity, ends[2]


def _capacity_changes(network: Network) -> Found:
    """Full speed until t, a fifth until u, nothing until v, then full speed again."""
    capacity, bytes_, t, u, v = 10.0, 100.0, 3.0, 8.0, 20.0
    link = network.link(capacity)
    flow = network.start([link], None, bytes_)
    for at, now in ((t, capacity / 5), (u, 0.0), (v, capacity)):
        _later(network, at, lambda now=now: network.set_capacity(link, now))  # type: ignore[misc]
    (end,) = _ends(network, flow)
    yield "end", v + (bytes_ - capacity * t - capacity / 5 * (u - t)) / capacity, end


def _weights(network: Network) -> Found:
    """A file striped over two OSTs 3 : 1 beside one wholly on the first: rates are equal, r (3/4 + 1) = C."""
    capacity, bytes_ = 2.0, 8.0
    a, b = network.link(capacity), network.link(capacity)
    striped = network.start([a, b], [0.75, 0.25], 2 * bytes_)
    whole = network.start([a], None, bytes_)
    ends = _ends(network, striped, whole)
    yield "end of the whole file", bytes_ * 1.75 / capacity, ends[1]
    yield "end of the striped file", bytes_ * 1.75 / capacity + bytes_ * 0.75 / capacity, ends[0]


def _limits(network: Network) -> Found:
    """One flow at its limit, the other with the rest."""
    capacity, limit, bytes_ = 10.0, 1.5, 30.0
    link = network.link(capacity)
    ends = _ends(network, network.start([link], None, bytes_, limit), network.start([link], None, bytes_))
    yield "end of the limited flow", bytes_ / limit, ends[0]
    yield "end of the other", bytes_ / (capacity - limit), ends[1]


def _service_curve(network: Network) -> Found:
    """With n streams C / (1 + d (n - 1)) in all: n equal flows take n s / C (1 + d (n - 1))."""
    capacity, loss, size, count = 4.0, 0.25, 6.0, 5
    link = network.link(capacity, curve=lambda n: 1 / (1 + loss * (n - 1)))
    ends = _ends(network, *(network.start([link], None, size) for _ in range(count)))
    yield "end", count * size / capacity * (1 + loss * (count - 1)), max(ends)


def _classes(network: Network) -> Found:
    """Like flows that come one after the other share a class: flow k of n at k t; the last ends at n s / C."""
    capacity, size, t, count = 5.0, 8.0, 0.5, 20
    link = network.link(capacity)
    flows = [_later(network, k * t, lambda: network.start([link], None, size)) for k in range(count)]
    yield "last end", count * size / capacity, max(_ends(network, *flows))


def _nothing_in_the_way(network: Network) -> Found:
    free = network.link(math.inf)
    (end,) = _ends(network, network.start([free], None, 1e12))
    yield "end", 0.0, end


CASES: tuple[tuple[str, str, Callable[[Network], Found]], ...] = (
    ("one flow", "bytes / narrowest link", _one_flow),
    ("n flows on one link", "n bytes / C", _equal_flows),
    ("unequal flows on one link", "t(k-1) + (n-k+1) (s(k) - s(k-1)) / C", _unequal_flows),
    ("two bottlenecks", "bytes / C1; bytes / (C2 - C1)", _two_bottlenecks),
    ("parking lot", "bytes / C; 3/2 bytes / C", _parking_lot),
    ("staggered arrivals", "work done alone, in pairs, by three", _staggered),
    ("capacity changes", "u' + what is left / C", _capacity_changes),
    ("weights", "r = C / (sum of weights)", _weights),
    ("rate limit", "bytes / limit; bytes / (C - limit)", _limits),
    ("service curve", "n s (1 + d (n - 1)) / C", _service_curve),
    ("like flows, staggered", "n s / C", _classes),
    ("no limit at all", "0", _nothing_in_the_way),
)
"""Name, formula, the case."""
