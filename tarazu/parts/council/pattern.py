"""What one node (an OSS, a client; in the simulator an I/O node) saw of its I/O in one interval, and the access pattern
that it shows: what values are learned for (Bez et al., Adaptive Request Scheduling, section IV-B; algorithm 1, line 6).
How many files are accessed no counter of Lustre's tells.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import msgspec

CROWDED = 2.0
"""Requests at a time from which the node sets the pace; with fewer of them those do who ask."""
MAX_BYTES_PER_S = 1e12
"""Of one node; more is no observation."""
MAX_DEMAND = 1e9
MAX_REQUESTS = 10**12
Operation = Literal["read", "write", "both"]
Spatiality = Literal["contiguous", "strided", "unknown"]
PHASE = 3
"""Intervals of one pattern after each other, from which a client is in it, and does not do several things by turns."""
MIN_REQUESTS = 4
"""In an interval. Fewer show no pattern: nothing is decided by them."""
ONE_DIRECTION = 0.9
"""Share of the bytes from which the rest is not worth a pattern of its own: opening, closing, small looks."""
DISCONTIGUOUS = 0.5
"""Share of a server's bulk I/Os with discontiguous pages from which they are taken to be strided."""
WHOLE_BYTES = 256 << 10
"""A smaller bulk I/O without a gap may as well be one block of a strided pattern: no counter has what lies between."""


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


class Pattern(NamedTuple):
    """One context: intervals of one pattern are taken to be alike, and share what is learned."""

    operation: Operation
    spatiality: Spatiality
    request_bytes: int
    """Mean size of a request, as the nearest power of two."""

    def __str__(self) -> str:
        return f"{self.operation} {self.spatiality}, {self.request_bytes} B"


def detect(observation: Observation) -> Pattern | None:
    """The one pattern of an interval; None where too few requests show one.

    Where reads and writes are mixed, the spatiality is that of more bytes, else, where it is not known, of the others.
    """
    read, write = observation.read, observation.write
    requests, size_bytes = read.requests + write.requests, observation.bytes
    if requests < MIN_REQUESTS or size_bytes <= 0:
        return None
    more, less = (read, write) if read.bytes >= write.bytes else (write, read)
    spatiality = _spatiality(more)
    if more.bytes >= ONE_DIRECTION * size_bytes:
        mean = more.bytes / max(more.requests, 1)
        return Pattern("read" if more is read else "write", spatiality, request_class(mean))
    if spatiality == "unknown":
        spatiality = _spatiality(less)
    return Pattern("both", spatiality, request_class(size_bytes / requests))


def request_class(mean_bytes: float) -> int:
    """The power of two nearest to a mean request size (by ratio)."""
    return 1 << max(0, round(math.log2(mean_bytes)))


def _spatiality(direction: Direction) -> Spatiality:
    if direction.discontiguous < 0:
        return "unknown"
    if direction.discontiguous >= DISCONTIGUOUS:
        return "strided"
    return "unknown" if direction.bytes < WHOLE_BYTES * direction.requests else "contiguous"
