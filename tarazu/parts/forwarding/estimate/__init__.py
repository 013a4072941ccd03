"""An application's bandwidth curve from its I/O phases and benchmarks that are like them (paper E, section 6)."""

from __future__ import annotations

from tarazu.parts.forwarding.estimate.database import (
    Benchmark,
    BenchmarkPattern,
    Benchmarks,
    Measurement,
    load,
)
from tarazu.parts.forwarding.estimate.estimate import Estimate, estimate

__all__ = [
    "Benchmark",
    "BenchmarkPattern",
    "Benchmarks",
    "Estimate",
    "Measurement",
    "estimate",
    "load",
]
