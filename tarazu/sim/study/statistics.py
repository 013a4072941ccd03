"""What several seeds say: mean and confidence interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

LEVEL = 0.95


class MeanEstimate(msgspec.Struct, frozen=True):
    """A mean over seeds and how sure it is."""

    mean: float
    half: float
    """Half of the confidence interval (Student's t); nan with fewer than two values, for then nothing is known."""
    values: int

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half


def estimate(values: Sequence[float], level: float = LEVEL) -> MeanEstimate:
    """Mean of at least one value with the interval that holds the true mean at that level."""
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return MeanEstimate(mean, math.nan, count)
    from scipy.special import stdtrit  # scipy.stats takes seconds to import

    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return MeanEstimate(mean, float(stdtrit(count - 1, (1 + level) / 2)) * math.sqrt(variance / count), count)


def ratio(ours: Sequence[float], theirs: Sequence[float], level: float = LEVEL) -> MeanEstimate:
    """Mean and interval of ours / theirs, pair by pair: what is at one place in both had the same seed."""
    return estimate([a / b for a, b in zip(ours, theirs, strict=True)], level)
