"""What an OST's level is made of before anything is placed: one function for the policy and for people.

    level = fill · (fill − lowest fill) + promised writing time + degraded, in levels
    rate  = speed × latency × OSS load, relative to the median OST

1 level is the time that all OSTs need for the new and the promised bytes when they finish together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, median_low
from typing import Any

import msgspec
import numpy as np

from tarazu.allocate.cost import relative_speeds
from tarazu.allocate.eligible import room_bytes, why_not
from tarazu.allocate.problem import Array
from tarazu.config import Weights
from tarazu.model import Ost, SystemView
from tarazu.units import GIB

SLOWEST = 1e-4
"""Share of the median throughput below which an OST is as good as stopped."""
LEAST_UNDER_LOAD = 0.05
"""Share of its throughput that an OST keeps however loaded its server is."""
LIKE_LOADS = 0.25
"""So far from the median server's a load counts as the same: reports of one moment are of different intervals."""
SLOW_LATENCY = 2.0
"""Times the usual write latency up to which an OST counts as equal to the others."""


@dataclass(slots=True)
class Terms:
    """One value per OST in each array."""

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


def terms(view: SystemView, osts: Sequence[Ost], weights: Weights, new_bytes: float) -> Terms:
    """The terms of `osts` for requests of `new_bytes` in all."""
    known = dict(zip((o.index for o in view.osts), relative_speeds(view.osts)))
    speed = np.array([known[o.index] for o in osts])
    speed /= np.median(speed)
    latency = _latency_factors(osts, weights)
    loads = {o.name: o.load for o in view.osses}
    load = np.array([loads.get(o.oss, 0.0) for o in osts]).clip(0, 1)
    usual = median_low([o.load for o in view.osses]) if view.osses else 0.0
    apart = load - usual
    load = usual + np.sign(apart) * np.maximum(0, np.abs(apart) - LIKE_LOADS) / (1 - LIKE_LOADS)
    busy = (load - weights.idle_load).clip(0) / max(1e-9, 1 - weights.idle_load)
    oss_load = np.maximum(LEAST_UNDER_LOAD, 1 - weights.oss_load * busy)
    rate = speed * latency * oss_load
    rate = np.maximum(rate / np.median(rate), SLOWEST)
    promised = np.array([o.promised_bytes for o in osts], float)
    total = np.array([max(1, o.total_bytes) for o in osts], float)
    fill = (np.array([o.used_bytes for o in osts], float) + promised) / total
    written = np.array([o.written_bytes for o in osts], float)
    waiting = weights.promise * np.maximum(0, promised - written)
    even_time = (max(1.0, new_bytes) + float(waiting.sum())) / float(rate.sum())
    slope = weights.time / (rate * even_time)
    degraded = weights.degraded * np.array([o.degraded for o in osts], float)
    return Terms(
        speed, latency, oss_load, rate, weights.fill * (fill - fill.min()), slope * waiting, degraded, slope
    )


def _latency_factors(osts: Sequence[Ost], weights: Weights) -> Array:
    latencies = [o.write_latency_s for o in osts if o.write_latency_s]
    usual = median(latencies) if latencies else 0.0
    factor = np.ones(len(osts))
    for i, ost in enumerate(osts):
        slow = ost.write_latency_s and ost.write_latency_s > SLOW_LATENCY * usual
        if ost.write_bytes_per_s is None and slow:
            factor[i] = (usual / (ost.write_latency_s or usual)) ** weights.latency
    return factor


def water_level(base: Array, rate: Array, total: float) -> float:
    """The level L with sum(max(0, rate·L − base)) = total, by sorting the levels at which OSTs join."""
    order = np.argsort(base / rate, kind="stable")
    rates = np.cumsum(rate[order])
    bases = np.cumsum(base[order])
    levels = (total + bases) / rates
    joins = np.append((base / rate)[order][1:], np.inf)
    return float(levels[int(np.argmax(levels <= joins))])


class OstCost(msgspec.Struct, frozen=True):
    """The cost terms of one OST, for people and programs (`tarazu explain --costs`)."""

    ost: int
    oss: str
    excluded: str = ""
    """Why it gets no stripes at all; empty when it may. The terms of such an OST are those of a plain one."""
    room_bytes: int = 0
    speed: float | None = None
    """Speed over that of its peers; None where nothing was measured."""
    source: str = ""
    """What the speed was measured by."""
    latency: float = 1.0
    oss_load: float = 1.0
    rate: float = 1.0
    fill: float = 0.0
    promise: float = 0.0
    degraded: float = 0.0
    level: float = 0.0
    """fill + promise + degraded."""
    share: float = 0.0
    """Bytes that it would get of an even job, over the mean: 1 is an equal share."""


def costs(view: SystemView, weights: Weights, new_bytes: float | None = None) -> list[OstCost]:
    """The terms of all OSTs of a view; usable ones are compared with usable ones only.

    new_bytes: size of the job that they are computed for; default 1 GiB per usable OST.
    """
    out = {o.index: why_not(o) or ("" if room_bytes(o, weights) else "full") for o in view.osts}
    usable = [o for o in view.osts if not out[o.index]]
    found: dict[int, OstCost] = {}
    if usable:
        new = float(new_bytes or GIB * len(usable))
        t = terms(view, usable, weights, new)
        share = np.maximum(0.0, water_level(t.level / t.slope, 1 / t.slope, new) - t.level) / t.slope
        share *= len(usable) / new
        columns = {
            "latency": t.latency,
            "oss_load": t.oss_load,
            "rate": t.rate,
            "fill": t.fill,
            "promise": t.promise,
            "degraded": t.degraded,
            "level": t.level,
            "share": share,
        }
        for i, ost in enumerate(usable):
            speed = float(t.speed[i]) if ost.write_bytes_per_s else None
            values: dict[str, Any] = {name: float(column[i]) for name, column in columns.items()}
            found[ost.index] = OstCost(
                ost.index,
                ost.oss,
                room_bytes=room_bytes(ost, weights),
                speed=speed,
                source=ost.speed_source,
                **values,
            )
    return [
        found.get(o.index) or OstCost(o.index, o.oss, out[o.index], room_bytes(o, weights)) for o in view.osts
    ]
