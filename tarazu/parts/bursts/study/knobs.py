"""What is turned until a generated system has the published statistics: of which jobs it consists, how large they are,
how long they run, how much they move and when.
"""

from __future__ import annotations

from typing import NamedTuple

from tarazu.parts.bursts.measures.published import Name
from tarazu.parts.bursts.study.queue import TrafficPattern


class Cell(NamedTuple):
    """Jobs of one kind, by what the paper counts."""

    part: float
    """Of all jobs."""
    pattern: TrafficPattern
    intensive: bool
    low_communication: bool


class Sizes(NamedTuple):
    """Nodes of multi-node jobs: powers of two mostly, each so much rarer than the one before."""

    ratio: float
    """How many applications have up to 2**(g + 1) nodes, beside those of up to 2**g."""
    most: int
    """The largest power's exponent."""
    odd: float
    """Part of them that is no power of two."""


class Spread(NamedTuple):
    """A lognormal distribution."""

    median: float
    sigma: float


class JobKind(NamedTuple):
    """Data-intensive jobs, or the others."""

    sizes: Sizes
    even: Sizes
    """Of jobs with even traffic."""
    writers: float
    """Of uneven jobs at most this part of the nodes collects for the others."""
    run_s: Spread
    rate: Spread
    """Bytes/s of a job of one node while it reads or writes; of n nodes n**`growth` times that. Of others than
    data-intensive ones only the spread counts: the rest follows from `traffic`."""
    growth: float
    duty: Spread
    """Part of the run time in which it reads or writes."""
    period_s: Spread
    """From one phase of I/O to the next."""
    log: float
    """Part of the volume that is written a little at a time, between the phases."""


class Knobs(NamedTuple):
    cells: tuple[Cell, ...]
    traffic: float
    """Part of all bytes that data-intensive jobs move."""
    divergent: float
    """Part of the multi-node applications with more than five jobs."""
    intensive: JobKind
    others: JobKind
    node_hours: float
    """Of a job on the mean; run times of others than data-intensive ones are scaled to it."""
    load: float
    """Node seconds that are submitted in a second, beside the nodes there are."""
    waiting_s: float
    """At the beginning there waits what the machine has to do for so long."""


def _cells(
    multi: float,
    root: float,
    even: float,
    of_intensive: dict[TrafficPattern, float],
    apart: float,
    high: float,
) -> tuple[Cell, ...]:
    """Cells whose sums are the published ones.

    multi: part of the jobs on several nodes, of which `root` have rank-0 I/O; `even` of all-rank jobs are even;
    of_intensive: part of all jobs that is data-intensive and communicates little, by pattern; apart: all-rank
    data-intensive jobs that communicate much; high: jobs that communicate much, in all.
    """
    all_rank = multi * (1 - root)
    part = {
        TrafficPattern.SINGLE: 1 - multi,
        TrafficPattern.ROOT: multi * root,
        TrafficPattern.EVEN: all_rank * even,
        TrafficPattern.UNEVEN: all_rank * (1 - even),
    }
    cells = [Cell(of_intensive[pattern], pattern, True, True) for pattern in TrafficPattern]
    cells.append(Cell(apart, TrafficPattern.EVEN, True, False))
    rest = high - apart
    chatty = {
        TrafficPattern.ROOT: 0.3 * rest,
        TrafficPattern.EVEN: 0.4 * rest,
        TrafficPattern.UNEVEN: 0.3 * rest,
    }
    for pattern in TrafficPattern:
        talk = chatty.get(pattern, 0.0)
        cells.append(Cell(talk, pattern, False, False))
        used = of_intensive[pattern] + talk + (apart if pattern == TrafficPattern.EVEN else 0.0)
        cells.append(Cell(part[pattern] - used, pattern, False, True))
    assert min(cell.part for cell in cells) >= 0, (
        "more data-intensive jobs of a pattern than there are jobs of it"
    )
    return tuple(cell for cell in cells if cell.part > 0)


HOUR_S = 3600.0
MB = 1e6

KNOBS: dict[Name, Knobs] = {
    "tianhe-1a": Knobs(
        # 42.7 % of all jobs are all-rank (table 3), 74.3 % of the multi-node ones (3.2.2): so 57.5 % are multi-node.
        cells=_cells(
            multi=0.427 / 0.743,
            root=0.257,
            even=0.619,
            of_intensive={
                TrafficPattern.SINGLE: 0.003,
                TrafficPattern.ROOT: 0.003,
                TrafficPattern.EVEN: 0.030,
                TrafficPattern.UNEVEN: 0.033,
            },
            apart=0.003,
            high=0.067,
        ),
        traffic=0.981,
        divergent=0.294,
        intensive=JobKind(
            sizes=Sizes(ratio=0.9, most=6, odd=0.0),
            even=Sizes(ratio=0.05, most=4, odd=0.3),
            writers=0.1,
            run_s=Spread(4.7 * HOUR_S, 0.4),
            rate=Spread(50 * MB, 0.3),
            growth=0.0,
            duty=Spread(0.68, 0.2),
            period_s=Spread(1200, 0.6),
            log=0.02,
        ),
        others=JobKind(
            sizes=Sizes(ratio=0.8, most=10, odd=0.2),
            even=Sizes(ratio=0.8, most=10, odd=0.2),
            writers=0.4,
            run_s=Spread(2 * HOUR_S, 0.85),
            rate=Spread(10 * MB, 1.0),
            growth=0.5,
            duty=Spread(0.03, 0.5),
            period_s=Spread(1800, 0.6),
            log=0.2,
        ),
        node_hours=45,
        load=1.1,
        waiting_s=12 * HOUR_S,
    ),
    "cs19": Knobs(
        cells=_cells(
            multi=0.444 / 0.934,
            root=0.066,
            even=0.529,
            of_intensive={
                TrafficPattern.SINGLE: 0.045,
                TrafficPattern.ROOT: 0.008,
                TrafficPattern.EVEN: 0.045,
                TrafficPattern.UNEVEN: 0.195,
            },
            apart=0.008,
            high=0.047,
        ),
        traffic=0.910,
        divergent=0.236,
        intensive=JobKind(
            sizes=Sizes(ratio=1.3, most=8, odd=0.9),
            even=Sizes(ratio=0.1, most=4, odd=0.3),
            writers=0.1,
            run_s=Spread(3 * HOUR_S, 0.4),
            rate=Spread(50 * MB, 0.3),
            growth=0.0,
            duty=Spread(0.25, 0.2),
            period_s=Spread(1800, 0.6),
            log=0.02,
        ),
        others=JobKind(
            sizes=Sizes(ratio=1.05, most=10, odd=0.9),
            even=Sizes(ratio=1.05, most=10, odd=0.9),
            writers=0.1,
            run_s=Spread(2 * HOUR_S, 0.5),
            rate=Spread(10 * MB, 0.7),
            growth=-0.3,
            duty=Spread(0.02, 0.5),
            period_s=Spread(1800, 0.6),
            log=0.05,
        ),
        node_hours=114,
        load=1.1,
        waiting_s=24 * HOUR_S,
    ),
}
