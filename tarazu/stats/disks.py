"""OSTs on one disk (its partitions, files, logical volumes): they are as fast as the disk, also those without I/O.

Their I/Os are put together: more are seen, sooner, and what one OST shows counts for its neighbours, whatever these
showed before. An OST that is much slower than another on the disk in the same time has a cause of its own (its
volume is held, say), and speaks for itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tarazu.stats.evidence import Evidence, Seen, flight_alone, since_base
from tarazu.stats.slowness import variance

APART = 3.0
"""Times slower than the fastest OST on the disk, in bytes and in I/Os per second, beyond what chance explains."""
CHANCE = 2.0
"""Standard deviations."""


class Shares(NamedTuple):
    of_disk: Evidence | None
    apart: dict[int, Evidence]
    """OST index → what it showed, for those that are not put together with the others."""


def put_together(spans: Mapping[int, tuple[Seen, Seen]]) -> Shares:
    """What the I/Os of one direction tell of the disk; `spans`: OST index → (now, base), measured by one source."""
    parts = {}
    for index, (now, base) in spans.items():
        since = since_base(now.io, base.io)
        if since.ios > 0 and since.bytes > 0 and since.usecs > 0:
            flight, others = flight_alone(since, now, base)
            parts[index] = (
                Evidence(
                    base.at_s, now.at_s, since.source, since.ios, since.bytes, since.usecs / 1e6, flight
                ),
                others / 1e6,
            )
    if not parts:
        return Shares(None, {})
    shown = [e for e, _ in parts.values()]
    by_bytes, by_ios = max(shown, key=lambda e: e.rates[0]), max(shown, key=lambda e: e.rates[1])
    apart = {
        i: e
        for i, (e, _) in parts.items()
        if e.rates[0] * _factor(e, by_bytes) < by_bytes.rates[0]
        and e.rates[1] * _factor(e, by_ios) < by_ios.rates[1]
    }
    return Shares(_sum([part for i, part in parts.items() if i not in apart]), apart)


def _factor(one: Evidence, other: Evidence) -> float:
    return APART * math.exp(CHANCE * math.sqrt(variance(one.ios, 1, other.ios)))


def _sum(parts: list[tuple[Evidence, float]]) -> Evidence:
    """In flight on the disk: as many OSTs at once as their times say, with what the other direction adds."""
    first = parts[0][0]
    seconds = sum(e.seconds for e, _ in parts)
    flight = sum(e.in_flight * e.seconds for e, _ in parts) / seconds
    if first.source == "brw_stats":
        flight *= seconds**2 / sum(e.seconds**2 for e, _ in parts)
    others_s = sum(others for _, others in parts)
    return Evidence(
        min(e.begin_s for e, _ in parts),
        max(e.at_s for e, _ in parts),
        first.source,
        sum(e.ios for e, _ in parts),
        sum(e.bytes for e, _ in parts),
        seconds,
        flight * (1 + others_s / seconds) if first.source == "brw_stats" else flight,
        flight,
        others_s,
    )
