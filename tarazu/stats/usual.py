"""What is usual for each OST: how long its I/Os take, by direction, size and number in flight, over weeks.

Of each OST, and reads and writes each, there are 30 cells: six sizes of the mean I/O times five numbers in flight. A
cell holds how many intervals were seen, the mean logarithm of an I/O's time, bytes and number in flight, and how much
the times vary. It forgets with a half-life of `HALF_LIFE_H`. At most `OST_BYTES` of an OST, and `MOST_OSTS` of these.

Hours are those in which reports came: no clock is read, and while mdsd is down nothing is forgotten.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from tarazu.stats.evidence import APART, Evidence, chance, noise
from tarazu.units import KIB, MIB

SIZES = (8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 2 * MIB)
"""Mean bytes of an I/O up to which each class but the last goes."""
LOADS = (1.5, 4.0, 10.0, 25.0)
"""Mean number in flight, likewise."""
CELLS = (len(SIZES) + 1) * (len(LOADS) + 1)
HALF_LIFE_H = 14 * 24.0
EPISODE_H = 1 / 6
"""Intervals of so long count for one: what follows each other is of the same jobs."""
LEAST_EPISODES = 5.0
LEAST_H = 0.5
"""A cell of fewer, and an OST that is known for less, tells nothing."""
FARTHEST = 2
"""Classes of size by which the nearest cell that tells something may differ."""
ODD = 3.0
"""Standard deviations: what is farther from the mean counts as if it were so far."""
FORGOTTEN_H = 60 * 24.0
"""An OST that was not seen for so long is forgotten."""
MOST_OSTS = 32_768
"""More are judged by their peers only."""
OST_BYTES = 2048
"""Of one, in memory and on disk: two directions of `CELLS` cells with `FIELDS` numbers of four bytes."""
LONGEST_STEP_S = 3600.0
NO_QUEUE = frozenset({"obdfilter"})
"""Sources that do not tell how many are in flight: a queue would look like slowness."""
FIELDS = 6
"""Of a cell: weight, when (hours), mean log of seconds, bytes and number in flight, variance of the first."""

Direction = tuple[str, int | str, bool]
"""(file system, OST index or server, True for writes)."""


class Usually(NamedTuple):
    """What I/Os like these usually are on this OST."""

    rates: tuple[float, float, float, float]
    """As those of `Evidence`."""
    mean_bytes: float
    episodes: float
    """That say so, of ten minutes each."""
    variance: float
    """Of the logarithm of an interval's mean time."""
    hours: float
    """For so long the OST is known, or as far back as it remembers."""

    def noise(self, ios: float) -> float:
        """Variance of the slowness of a well OST's interval with so many I/Os."""
        young = APART**2 / max(self.hours, 0.1)
        return max(noise(ios), self.variance) * (1 + 1 / self.episodes) + young


def _class_of(value: float, bounds: Sequence[float]) -> int:
    return next((n for n, bound in enumerate(bounds) if value <= bound), len(bounds))


def cell_of(e: Evidence) -> int:
    """Number of the cell, 0 to `CELLS` - 1."""
    return _class_of(e.mean_bytes, SIZES) * (len(LOADS) + 1) + _class_of(e.in_flight, LOADS)


def _nearest(cell: int) -> tuple[int, ...]:
    """All that may stand for a cell, the best first: of the same size, however deep the queue, before others."""
    size, load = divmod(cell, len(LOADS) + 1)
    others = [divmod(c, len(LOADS) + 1) for c in range(CELLS)]
    near = sorted((abs(s - size), abs(n - load), s, n) for s, n in others if abs(s - size) <= FARTHEST)
    return tuple(s * (len(LOADS) + 1) + n for _, _, s, n in near)


_NEAREST = tuple(_nearest(cell) for cell in range(CELLS))


def _informative(ios: float) -> float:
    """Weight of an interval of so many I/Os: 1 for many."""
    return APART**2 / (APART**2 + chance(ios))


class Cells:
    """Reads or writes of one OST."""

    __slots__ = ("cells", "source")

    def __init__(self, source: str, begun_h: float, seen_h: float) -> None:
        self.source = source
        self.cells = array("f", bytes(4 * FIELDS * CELLS))
        self.cells.extend((begun_h, seen_h))

    @property
    def begun_h(self) -> float:
        return self.cells[-2]

    @property
    def seen_h(self) -> float:
        return self.cells[-1]

    def take(self, e: Evidence, hours: float, weight: float) -> None:
        cells, at = self.cells, FIELDS * cell_of(e)
        cells[-1] = hours
        known = cells[at] * 0.5 ** (max(0.0, hours - cells[at + 1]) / HALF_LIFE_H)
        apart = (
            min(1.0, max(hours - cells[at + 1], (e.at_s - e.begin_s) / 3600) / EPISODE_H) if known else 1.0
        )
        whole = known + weight * apart * _informative(e.ios)
        share = 1.0 - known / whole
        off = math.log(e.seconds / e.ios) - cells[at + 2]
        if known >= LEAST_EPISODES:
            most = ODD * math.sqrt(max(APART**2, cells[at + 5]))
            off = max(-most, min(most, off))
        cells[at], cells[at + 1] = whole, hours
        cells[at + 2] += share * off
        cells[at + 3] += share * (math.log(e.mean_bytes) - cells[at + 3])
        cells[at + 4] += share * (math.log(e.in_flight) - cells[at + 4])
        cells[at + 5] = (1.0 - share) * (cells[at + 5] + share * off * off)

    def expected(self, e: Evidence, hours: float) -> Usually | None:
        known_h = hours - self.begun_h
        if known_h < LEAST_H or self.source != e.source:
            return None
        cells = self.cells
        for cell in _NEAREST[cell_of(e)]:
            at = FIELDS * cell
            if cells[at] >= LEAST_EPISODES:
                of_bytes = math.exp(cells[at + 3] - cells[at + 2])
                of_ios, flight = math.exp(-cells[at + 2]), math.exp(cells[at + 4])
                return Usually(
                    (of_bytes, of_ios, of_bytes * flight, of_ios * flight),
                    math.exp(cells[at + 3]),
                    cells[at],
                    cells[at + 5],
                    min(known_h, HALF_LIFE_H),
                )
        return None


class Usual:
    """Of all OSTs of all file systems."""

    def __init__(self) -> None:
        self.hours = 0.0
        """In which reports came."""
        self._last_s: float | None = None
        self.sides: dict[Direction, Cells] = {}

    def __len__(self) -> int:
        """Directions of OSTs of which something is known."""
        return len(self.sides)

    def pass_time(self, received_s: float) -> None:
        """A report came; `received_s` on any clock that is not set. One that comes late may be older than the last."""
        last_s = received_s if self._last_s is None else self._last_s
        self._last_s = max(last_s, received_s)
        self.hours += min(self._last_s - last_s, LONGEST_STEP_S) / 3600

    def expected(self, key: Direction, e: Evidence) -> Usually | None:
        """None where too little is known."""
        side = self.sides.get(key)
        return side.expected(e, self.hours) if side else None

    def learn(self, key: Direction, e: Evidence, weight: float = 1.0) -> None:
        """Take in one interval; `weight` 0-1, little for one that may be of a slow disk."""
        if e.source in NO_QUEUE:
            return
        side = self.sides.get(key)
        if side is None or side.source != e.source:
            if side is None and len(self.sides) >= 2 * MOST_OSTS:
                return
            side = self.sides[key] = Cells(e.source, self.hours, self.hours)
        side.take(e, self.hours, weight)

    def forget(self) -> None:
        """Forget what was not seen for so long."""
        self.sides = {k: s for k, s in self.sides.items() if self.hours - s.seen_h <= FORGOTTEN_H}
