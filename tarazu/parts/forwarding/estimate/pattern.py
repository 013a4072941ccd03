"""What a benchmark does, and what it reached: the nouns of the benchmark database."""

from __future__ import annotations

import msgspec

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.curve import Curve
from tarazu.trace.phases.phase import Api, Operation, Sharing, Spatiality


class BenchmarkPattern(msgspec.Struct, frozen=True):
    """How a benchmark, or a phase that wants one, accesses its files. `kind` says what its curve counts."""

    kind: Kind
    operation: Operation
    api: Api
    sharing: Sharing
    spatiality: Spatiality
    request_bytes: int
    process_bytes: int
    """Bytes that each process moves."""
    processes: int
    nodes: int

    @property
    def bytes(self) -> int:
        return self.process_bytes * self.processes


class Measurement(msgspec.Struct, frozen=True):
    """One repetition: a row of the database."""

    pattern: BenchmarkPattern
    resources: int
    bytes_per_s: float
    origin: str
    """`ior-4.0.0`, `simulator`: who measured."""
    measured: str
    """When, as its origin says it; may be empty."""
    id: str
    """The same for the same measurement, however often it is imported."""


class Benchmark(msgspec.Struct, frozen=True):
    """A pattern, and its bandwidth by number of resources."""

    pattern: BenchmarkPattern
    curve: Curve
