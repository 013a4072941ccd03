"""The level of an OST as a function of the bytes placed on it: the convex cost that the allocator minimises.

level(x) = time · (promise · promised + x) / (throughput · T) + fill · (fill − lowest fill) + degraded
           + ceiling · max(0, fill after x − highest fill that is acceptable)

T is the time that all OSTs need for the new and the promised bytes when they finish together, so a balanced
OST of an empty, idle, equal file system ends at level 1. A placement minimises the sum over OSTs of the
integral of its level: where all objects are equal the optimum of that sum is the lowest possible maximum too.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np

from tarazu.allocate.cost import Weights, speed_of
from tarazu.allocate.eligible import room_bytes
from tarazu.allocate.problem import Array, Problem
from tarazu.model import Ost, SystemView

SLOWEST = 1e-4
"""Share of the median throughput below which an OST is as good as stopped."""


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

    def at(self, x: Array) -> Array:
        """Level of each OST with `x` new bytes on it."""
        level: Array = np.maximum(self.base + self.slope * x, self.base2 + self.slope2 * x)
        return level

    def units_below(self, level: float, x: Array, unit: float) -> Array:
        """How many objects of `unit` bytes each OST takes before the next one's middle passes `level`."""
        first = (level - self.base - self.slope * x) / (self.slope * unit) + 0.5
        second = (level - self.base2 - self.slope2 * x) / (self.slope2 * unit) + 0.5
        units: Array = np.maximum(0, np.floor(np.minimum(first, second) + 1e-9)).astype(np.int64)
        return units


def water_level(base: Array, rate: Array, total: float) -> float:
    """The level L with sum(max(0, rate·L − base)) = total, by sorting the levels at which OSTs join."""
    order = np.argsort(base / rate, kind="stable")
    rates = np.cumsum(rate[order])
    bases = np.cumsum(base[order])
    levels = (total + bases) / rates
    joins = np.append((base / rate)[order][1:], np.inf)
    return float(levels[int(np.argmax(levels <= joins))])


def effective_speeds(view: SystemView, osts: tuple[Ost, ...], weights: Weights) -> Array:
    """Throughput of each OST under the present load of its server, relative to the median."""
    known = speed_of(view)
    rate = np.array([known[o.index] for o in osts])
    latencies = [o.write_latency_s for o in osts if o.write_latency_s]
    usual = median(latencies) if latencies else 0.0
    load = {o.name: o.load for o in view.osses}
    for i, ost in enumerate(osts):
        if ost.write_bytes_per_s is None and ost.write_latency_s and ost.write_latency_s > 2 * usual:
            rate[i] *= (usual / ost.write_latency_s) ** weights.latency
        busy = max(0.0, min(1.0, load.get(ost.oss, 0.0)) - weights.idle_load) / max(
            1e-9, 1 - weights.idle_load
        )
        rate[i] *= max(0.05, 1 - weights.oss_load * busy)
    relative: Array = np.maximum(rate / np.median(rate), SLOWEST)
    return relative


def build(problem: Problem, weights: Weights) -> Levels:
    """The levels of the usable OSTs before anything is placed."""
    osts = problem.osts
    total = np.array([max(1, o.total_bytes) for o in osts], float)
    promised = np.array([o.promised_bytes for o in osts], float)
    used = np.array([o.used_bytes for o in osts], float) + promised
    rate = effective_speeds(problem.view, osts, weights)
    waiting = weights.promise * promised
    new = max(1.0, float(problem.total_bytes))
    even_time = (new + float(waiting.sum())) / float(rate.sum())
    slope = weights.time / (rate * even_time)
    fill = used / total
    base = slope * waiting + weights.fill * (fill - fill.min())
    base += weights.degraded * np.array([o.degraded for o in osts], float)
    even_fill = water_level(used, total, new)
    ceiling = max(float(fill.max()), even_fill + weights.fill_tolerance * max(0.0, 1 - even_fill))
    base2 = base + weights.ceiling * (fill - ceiling)
    slope2 = slope + weights.ceiling / total
    room = np.array([room_bytes(o, weights) for o in osts], float)
    return Levels(base, np.maximum(slope, 1e-18), base2, np.maximum(slope2, 1e-18), room)
