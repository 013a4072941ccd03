"""Access patterns: what values are learned for (Bez et al., Adaptive Request Scheduling, section IV-B), and which one
an observation shows (algorithm 1, line 6). How many files are accessed no counter of Lustre's tells.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from tarazu.parts.council.observation import Direction, Observation

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
