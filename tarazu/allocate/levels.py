"""The level of an OST as a function of the bytes placed on it: the convex cost that the allocator minimises.

level(x) = time · (promise · promised and not written + x) / (throughput · T) + fill · (fill − lowest fill) + degraded
           + ceiling · max(0, fill after x − highest fill that is acceptable)

T is the time that all OSTs need for the new and the promised bytes when they finish together, so a balanced
OST of an empty, idle, equal file system ends at level 1. A placement minimises the sum over OSTs of the
integral of its level: where all objects are equal the optimum of that sum is the lowest possible maximum too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tarazu.allocate.eligible import room_bytes
from tarazu.allocate.problem import Array, Problem
from tarazu.allocate.terms import terms, water_level
from tarazu.config import Weights

EVEN = 0.01
"""Levels, and share of the throughput, by which OSTs may differ and still count as equal."""


@dataclass(slots=True)
class Levels:
    """Two lines per OST, the level being the higher one: level = max(base + slope·x, base2 + slope2·x)."""

    base: Array
    slope: Array
    base2: Array
    slope2: Array
    room: Array
    """Bytes that still fit, reserve and promises excluded."""

    @property
    def equal(self) -> bool:
        """True when the OSTs' levels differ by so little that bytes alone can be balanced."""
        slopes = float(self.slope.max() / self.slope.min())
        return bool(np.ptp(self.base) <= EVEN and slopes <= 1 + EVEN)

    def at(self, x: Array, osts: Array | slice = slice(None)) -> Array:
        """Level of each OST, or of those at positions `osts`, with `x` new bytes on it."""
        first = self.base[osts] + self.slope[osts] * x
        level: Array = np.maximum(first, self.base2[osts] + self.slope2[osts] * x)
        return level

    def units_below(self, level: float, x: Array, unit: float) -> Array:
        """How many objects of `unit` bytes each OST takes before the next one's middle passes `level`."""
        first = (level - self.base - self.slope * x) / (self.slope * unit) + 0.5
        second = (level - self.base2 - self.slope2 * x) / (self.slope2 * unit) + 0.5
        units: Array = np.maximum(0, np.floor(np.minimum(first, second) + 1e-9)).astype(np.int64)
        return units


def build(problem: Problem, weights: Weights) -> Levels:
    """The levels of the usable OSTs before anything is placed."""
    osts = problem.osts
    new = max(1.0, float(problem.total_bytes))
    t = terms(problem.view, osts, weights, new)
    total = np.array([max(1, o.total_bytes) for o in osts], float)
    used = np.array([o.used_bytes + o.promised_bytes for o in osts], float)
    fill = used / total
    base = t.level
    even_fill = water_level(used, total, new)
    ceiling = max(float(fill.max()), even_fill + weights.fill_tolerance * max(0.0, 1 - even_fill))
    base2 = base + weights.ceiling * (fill - ceiling)
    slope2 = t.slope + weights.ceiling / total
    room = np.array([room_bytes(o, weights) for o in osts], float)
    return Levels(base, np.maximum(t.slope, 1e-18), base2, np.maximum(slope2, 1e-18), room)
