"""What one node (an OSS, a client; in the simulator an I/O node) saw of its I/O in one interval."""

from __future__ import annotations

import math

import msgspec

CROWDED = 2.0
"""Requests at a time from which the node sets the pace; with fewer of them those do who ask."""
MAX_BYTES_PER_S = 1e12
"""Of one node; more is no observation."""
MAX_DEMAND = 1e9
MAX_REQUESTS = 10**12


class Direction(msgspec.Struct, frozen=True, array_like=True):
    """Reads or writes."""

    bytes: int = 0
    requests: int = 0
    discontiguous: float = -1.0
    """Share of bulk I/Os with discontiguous pages (`brw_stats`), 0-1; -1: not known."""


class Observation(msgspec.Struct, frozen=True, array_like=True):
    """One interval. Sent by announcers, as it is; new fields come last."""

    elapsed_s: float
    read: Direction = Direction()
    write: Direction = Direction()
    demand: float = 0.0
    """Requests that were queued or in service, on average over the interval; 0: not known."""

    @property
    def bytes(self) -> int:
        return self.read.bytes + self.write.bytes

    @property
    def bytes_per_s(self) -> float:
        """The reward (algorithm 1, line 5)."""
        return self.bytes / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def is_crowded(self) -> bool:
        """Requests met others; where that is not known all count."""
        return not 0 < self.demand < CROWDED


def impossible(observation: Observation) -> str:
    """Why no node can have seen this; empty when one can."""
    if not 0 < observation.elapsed_s <= 3600:
        return f"expected an interval of at most an hour, found {observation.elapsed_s:g} s"
    if not 0 <= observation.demand <= MAX_DEMAND:
        return f"expected a demand of at most {MAX_DEMAND:g}, found {observation.demand:g}"
    for of in (observation.read, observation.write):
        if of.bytes < 0 or not 0 <= of.requests <= MAX_REQUESTS or not math.isfinite(of.discontiguous):
            return f"expected bytes, at most {MAX_REQUESTS:g} requests, and a share of them, found {of}"
    if observation.bytes_per_s > MAX_BYTES_PER_S:
        return f"expected at most {MAX_BYTES_PER_S:g} bytes/s, found {observation.bytes_per_s:g}"
    return ""
