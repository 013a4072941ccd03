"""Where an OST's cost comes from: its level, the marginal cost of a byte more on it, as a function of the bytes placed.

    level(x) = lean(fill) + degraded + (promised and not written + x) / (rate · T)
               + ceiling · max(0, fill after x − highest fill that is acceptable: half of what the fullest has left)
    rate     = speed × latency × OSS load, relative to the median OST

T is the time that all OSTs need for the new and the promised bytes when they finish together, so a balanced OST of an
empty, idle, equal file system ends at level 1. A placement minimises the sum over OSTs of the integral of its level:
where all objects are equal the optimum of that sum is the lowest possible maximum too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

import numpy as np

from tarazu.allocate.eligible import relative_speeds, room_bytes
from tarazu.allocate.problem import Array, Problem
from tarazu.config import Weights
from tarazu.model import Ost, SystemView

SLOWEST = 1e-4
"""Share of the median throughput below which an OST is as good as stopped."""
LEAST_UNDER_LOAD = 0.05
"""Share of its throughput that an OST keeps however loaded its server is."""
LIKE_LOADS = 0.25
"""So far from the median server's a load counts as the same: reports of one moment are of different intervals."""
IDLE_LOAD = 0.5
"""A load up to here counts as none: a server that is half busy holds nobody up."""
SLOW_LATENCY = 2.0
"""Times the usual write latency up to which an OST counts as equal to the others."""
DEGRADED = 100.0
"""Levels of a degraded OST: so many times the time of a balanced one, that is, only when the others do not suffice."""
CEILING = 1000.0
"""Levels per unit of fill above the acceptable one: a thousandth more counts as much as the whole job's time."""
SCARCE_DAYS, MOST_SCARCE = 30.0, 30.0
"""An OST that is full in so many days makes space scarce: half as many, twice the budget, and so on up to so often."""
LATELY = 4.0
"""Steps of fill that an object counts that was placed lately."""
EVEN = 0.01
"""Levels, and share of the throughput, by which OSTs may differ and still count as equal."""


@dataclass(slots=True)
class Terms:
    """What the levels are made of before anything is placed: one value per OST in each array."""

    speed: Array
    """Measured speed over that of the OST's peers, over the median; 1 where unknown."""
    latency: Array
    """Factor below 1 for a high write latency where the throughput is unknown."""
    oss_load: Array
    """Factor below 1 for the load of its server."""
    rate: Array
    """The three together, over the median, at least `SLOWEST`."""
    fill: Array
    """Levels."""
    promise: Array
    """Levels."""
    degraded: Array
    """Levels."""
    slope: Array
    """Levels per new byte."""

    @property
    def level(self) -> Array:
        level: Array = self.promise + self.fill + self.degraded
        return level


def terms(
    view: SystemView, osts: Sequence[Ost], weights: Weights, new_bytes: float, share: float = 1.0
) -> Terms:
    """The terms of `osts` for requests of `new_bytes` in all; share: of what others were promised that they write
    meanwhile.
    """
    known = dict(zip((o.index for o in view.osts), relative_speeds(view.osts)))
    speed = np.array([known[o.index] for o in osts])
    speed /= np.median(speed)
    latency = _latency_factors(osts)
    loads = {o.name: o.load for o in view.osses}
    load = np.array([loads.get(o.oss, 0.0) for o in osts]).clip(0, 1)
    usual = median_low([o.load for o in view.osses]) if view.osses else 0.0
    apart = load - usual
    load = usual + np.sign(apart) * np.maximum(0, np.abs(apart) - LIKE_LOADS) / (1 - LIKE_LOADS)
    busy = (load - IDLE_LOAD).clip(0) / (1 - IDLE_LOAD)
    oss_load = np.maximum(LEAST_UNDER_LOAD, 1 - weights.oss_load * busy)
    rate = speed * latency * oss_load
    rate = np.maximum(rate / np.median(rate), SLOWEST)
    promised = np.array([o.promised_bytes for o in osts], float)
    total = np.array([max(1, o.total_bytes) for o in osts], float)
    fill = (np.array([o.used_bytes for o in osts], float) + promised) / total
    waiting = share * np.maximum(0, promised - np.array([o.written_bytes for o in osts], float))
    even_time = (max(1.0, new_bytes) + float(waiting.sum())) / float(rate.sum())
    slope = 1 / (rate * even_time)
    degraded = DEGRADED * np.array([o.degraded for o in osts], float)
    leaning = lean(fill, weights, view.days_until_full)
    return Terms(speed, latency, oss_load, rate, leaning, slope * waiting, degraded, slope)


def lean(fill: Array, weights: Weights, days_until_full: float | None = None) -> Array:
    """(n,) levels by which fuller OSTs are avoided: the budget where the fullest differs by so much that Lustre itself
    would lean, less below, and more beyond, or where an OST is full in less than `SCARCE_DAYS`.
    """
    above: Array = fill - fill.min()
    days = math.inf if days_until_full is None else max(days_until_full, 1e-3)
    scarcity = min(MOST_SCARCE, max(1.0, SCARCE_DAYS / days))
    return weights.fill_budget * scarcity * above / max(weights.fill_tolerance, 1e-3)


def _latency_factors(osts: Sequence[Ost]) -> Array:
    latencies = np.array([o.write_latency_s or 0.0 for o in osts])
    usual = np.median(latencies[latencies > 0]) if latencies.any() else 0.0
    unknown = np.array([o.write_bytes_per_s is None for o in osts])
    slow = unknown & (latencies > SLOW_LATENCY * usual)
    return np.where(slow, usual / np.maximum(latencies, 1e-9), 1.0)


@dataclass(slots=True)
class Levels:
    """Two lines per OST, the level being the higher one: level = max(base + slope·x, base2 + slope2·x)."""

    base: Array
    slope: Array
    base2: Array
    slope2: Array
    room: Array
    """Bytes that still fit, reserve and promises excluded."""
    lean: Array
    """Levels by which OSTs come later among those that are alike: some steps for each object that was placed there
    lately, one for being so much fuller that Lustre itself would lean. In `base`, without steps, where objects are so
    small that a few less on an OST cost no more.
    """

    @property
    def equal(self) -> bool:
        """True when the OSTs' levels differ by so little that bytes alone can be balanced."""
        slopes = float(self.slope.max() / self.slope.min())
        return bool(np.ptp(self.base) <= EVEN and slopes <= 1 + EVEN)

    def at(self, x: Array, osts: Array | slice | int = slice(None)) -> Array:
        """Level of each OST, or of those at positions `osts`, with `x` new bytes on it."""
        first = self.base[osts] + self.slope[osts] * x
        level: Array = np.maximum(first, self.base2[osts] + self.slope2[osts] * x)
        return level

    def bytes_below(self, level: float) -> Array:
        """New bytes with which each OST stays at `level` or below: the inverse of `at`; negative above it."""
        first = (level - self.base) / self.slope
        below: Array = np.minimum(first, (level - self.base2) / self.slope2)
        return below

    def reachable(self, sums: Array) -> Array:
        """Every level at which an OST can be with one of these sums of new bytes, ascending."""
        lines = np.vstack([self.base, self.slope, self.base2, self.slope2])
        base, slope, base2, slope2 = np.unique(lines, axis=1)[:, :, None]
        return np.unique(Levels(base, slope, base2, slope2, self.room, self.lean).at(sums))

    @classmethod
    def of_bytes(cls, osts: int, room: Array | float = np.inf) -> Levels:
        """Bytes alone as the level of each of so many OSTs."""
        zero, one = np.zeros(osts), np.ones(osts)
        return cls(zero, one, zero, one, one * room, zero)


def build(
    problem: Problem,
    weights: Weights,
    before: Array | float = 0.0,
    lately: Array | float = 0.0,
    share: float = 1.0,
) -> Levels:
    """The levels of the usable OSTs before anything is placed; `before`: bytes there, written at another time;
    `lately`: objects that jobs got there that may still run; share: of what others were promised that they write
    meanwhile.
    """
    osts = problem.osts
    new = max(1.0, float(problem.total_bytes))
    t = terms(problem.view, osts, weights, new, share)
    total = np.array([max(1, o.total_bytes) for o in osts], float)
    used = np.array([o.used_bytes + o.promised_bytes for o in osts], float) + before
    fill = used / total
    coarse = max((float(g.weights.max()) for g in problem.groups), default=0.0) * t.slope.min()
    leaning = t.fill if coarse <= max(weights.fill_budget, t.fill.max()) else np.zeros(len(osts))
    base = t.promise + leaning + t.degraded
    even_fill = water_level(used, total, new)
    acceptable = (max(float(fill.max()), even_fill) + 1) / 2
    base2 = base + CEILING * (fill - acceptable)
    slope2 = t.slope + CEILING / total
    room = np.maximum(0.0, np.array([room_bytes(o, weights) for o in osts], float) - before)
    step = max(weights.fill_budget, 1e-9)
    steps = (np.floor(t.fill / step) + LATELY * lately) * step
    return Levels(base, np.maximum(t.slope, 1e-18), base2, np.maximum(slope2, 1e-18), room, steps)


def water_level(base: Array, rate: Array, total: float) -> float:
    """The level L with sum(max(0, rate·L − base)) = total, by sorting the levels at which OSTs join."""
    order = np.argsort(base / rate, kind="stable")
    rates = np.cumsum(rate[order])
    bases = np.cumsum(base[order])
    levels = (total + bases) / rates
    joins = np.append((base / rate)[order][1:], np.inf)
    return float(levels[int(np.argmax(levels <= joins))])
