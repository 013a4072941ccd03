"""What is published of the I/O of two machines, Tianhe-1A and CS19, and where it stands in the paper
(spatially-bursty-io): the figures that generated systems must have.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from tarazu.parts.bursts.traffic.machine import Machine, regular

Name = Literal["tianhe-1a", "cs19"]
NAMES: tuple[Name, ...] = ("tianhe-1a", "cs19")

Use = Literal["drawn", "fitted", "follows"]
"""Drawn: the generator draws jobs in these proportions, and measuring finds them again. Fitted: knobs were
turned until it held. Follows: nothing was turned for it, so it is a result."""


class Hardware(NamedTuple):
    nodes: int
    per_cabinet: int
    """Nodes of a cabinet, which share an I/O node (2.1; on Tianhe-1A a hypothetical one)."""
    place: str

    def machine(self) -> Machine:
        return regular(self.nodes, self.per_cabinet)


HARDWARE: dict[Name, Hardware] = {
    "tianhe-1a": Hardware(5677, 64, "2.1, 2.2"),
    "cs19": Hardware(11392, 128, "2.1: 89 I/O nodes of 128 compute nodes"),
}


class Published(NamedTuple):
    key: str
    what: str
    place: str
    """Section, figure or table of the paper."""
    values: dict[Name, float]
    """As printed: percent, or a factor; of which machine nothing is printed has none."""
    tolerance: float | None
    """Generated ones may be so far away, in the same unit; None: nothing was turned for it, and it is as it is."""
    use: Use
    unit: str = "%"


def _both(tianhe_1a: float, cs19: float) -> dict[Name, float]:
    return {"tianhe-1a": tianhe_1a, "cs19": cs19}


STATISTICS = (
    Published("root", "rank-0 I/O, of multi-node jobs", "3.2.1", _both(25.7, 6.6), 0.5, "drawn"),
    Published("even", "even traffic, of all-rank jobs", "3.2.2, figure 2", _both(61.9, 52.9), 1.0, "drawn"),
    Published(
        "minimal", "on the fewest cabinets, of multi-node jobs", "3.3.1", _both(70.4, 49.2), 3.0, "fitted"
    ),
    Published(
        "uneven nodes",
        "nodes uneven over cabinets, of multi-cabinet jobs",
        "3.3.2, figure 5",
        _both(50.7, 71.3),
        3.0,
        "fitted",
    ),
    Published("top nodes", "traffic of the busiest 1 % nodes", "4.1", _both(90.8, 96.6), 1.5, "fitted"),
    Published(
        "top cabinets", "traffic of the busiest 20 % cabinets", "4.1, figure 8", _both(80, 80), 5.0, "fitted"
    ),
    Published("intensive", "data-intensive jobs", "6.2, table 3", _both(7.2, 30.1), 0.5, "drawn"),
    Published("their traffic", "traffic of data-intensive jobs", "6.2", _both(98.1, 91.0), 1.0, "drawn"),
    Published("all rank", "all-rank jobs, of all", "table 3", _both(42.7, 44.4), 0.5, "drawn"),
    Published("low communication", "low-communication jobs", "table 3", _both(93.3, 95.3), 0.5, "drawn"),
    Published("optimizable", "optimizable jobs", "table 3", _both(6.3, 24.0), 0.5, "drawn"),
    Published(
        "divergent",
        "divergent applications, of multi-node ones with more than five jobs",
        "6.4.1, figure 11",
        _both(29.4, 23.6),
        1.5,
        "drawn",
    ),
    Published(
        "contiguous",
        "traffic of the busiest 10 % I/O nodes, contiguous",
        "7.4.1, figure 15c",
        {"tianhe-1a": 58.6},
        None,
        "follows",
    ),
    Published(
        "i % n",
        "traffic of the busiest 10 % I/O nodes, i % n",
        "7.4.1, figure 15c",
        {"tianhe-1a": 37.9},
        None,
        "follows",
    ),
    # Printed as "almost 1/3", on other days than those before.
    Published(
        "taken away", "part of it that i % n takes away", "7.4.2, figure 16c", {"cs19": 33.0}, None, "follows"
    ),
    # Printed as "about twice as many".
    Published(
        "more I/O nodes",
        "I/O nodes of the busiest 1 % nodes, i % n beside contiguous",
        "7.5, figure 17a",
        {"cs19": 2.0},
        None,
        "follows",
        "x",
    ),
)
