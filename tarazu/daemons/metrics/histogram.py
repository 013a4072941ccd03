"""Durations and sizes, counted in classes as they happen."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
NUMBERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


class Histogram:
    """How many values lay at or below each bound. One thread writes; another may read, a value behind at worst."""

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.sum = 0.0
        self._counts = [0] * (len(bounds) + 1)

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """As prometheus_client's HistogramMetricFamily takes them: (upper bound, values up to it)."""
        total, pairs = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), list(self._counts), strict=True):
            total += count
            pairs.append((bound, float(total)))
        return pairs
