"""What daemons count of themselves, as plain values that a part may show: named and typed as Prometheus does.

A family is one figure by labels; a histogram has durations and sizes, counted in classes as they happen.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

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
        """(upper bound, values up to it)."""
        total, pairs = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), list(self._counts), strict=True):
            total += count
            pairs.append((bound, float(total)))
        return pairs


class Classes(NamedTuple):
    """A histogram's values as they were."""

    buckets: list[tuple[str, float]]
    sum: float


class Family(msgspec.Struct):
    kind: Literal["gauge", "counter", "histogram"]
    name: str
    """Without `tarazu_`, a counter's without `_total`."""
    text: str
    labels: tuple[str, ...] = ()
    samples: dict[tuple[str, ...], float | Classes] = {}
    """Values of its labels → what there is of them."""


def gauge(name: str, text: str, value: float) -> Family:
    return Family("gauge", name, text, samples={(): value})


def counter(name: str, text: str, value: float) -> Family:
    return Family("counter", name, text, samples={(): value})


def counters(name: str, text: str, label: str, values: Mapping[str, float]) -> Family:
    """One counter for each value of a label, of which there are few."""
    return Family("counter", name, text, (label,), {(key,): value for key, value in values.items()})


def histogram(name: str, text: str, values: Histogram) -> Family:
    return Family("histogram", name, text, samples={(): Classes(values.buckets(), values.sum)})
