"""An application's bandwidth curve from its I/O phases and benchmarks that are like them (paper E, section 6)."""

from __future__ import annotations

from tarazu.parts.forwarding.estimate.database import Benchmarks, load
from tarazu.parts.forwarding.estimate.estimate import Estimate, PhaseEstimate, estimate
from tarazu.parts.forwarding.estimate.pattern import Benchmark, BenchmarkPattern, Measurement

__all__ = [
    "Benchmark",
    "BenchmarkPattern",
    "Benchmarks",
    "Estimate",
    "Measurement",
    "PhaseEstimate",
    "estimate",
    "load",
]
