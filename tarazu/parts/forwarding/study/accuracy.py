"""How good an estimated curve is: not only by its values, but by what an allocation policy would do with it.

Paper E measures the relative error alone, and found a benchmark whose error was larger to give the better curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from tarazu.parts.forwarding.curve import Curve

AS_GOOD = 0.03
"""Of the best bandwidth: numbers of resources that reach it but for so much are as good."""


class Accuracy(msgspec.Struct, frozen=True):
    """An estimated curve beside the true one."""

    error: float
    """Mean of |estimated − measured| / measured over all repetitions of all points (paper E, table 3)."""
    best: int
    """The least number whose true median is the highest."""
    found: int
    """The same of the estimate."""
    regret: float
    """What is lost by `found`: 1 − its true bandwidth over that of the best."""
    worst_regret: float
    """The same where only 1 … m resources are to be had, for the m for which it is most."""
    inside: float
    """Share of the repetitions that lie in the estimate's 5 % to 95 %: 0.9 where its spread is right."""

    @property
    def exact(self) -> bool:
        return self.best == self.found

    @property
    def as_good(self) -> bool:
        """The number found is the best one, or loses at most AS_GOOD."""
        return self.regret <= AS_GOOD


def accuracy(estimated: Curve, true: Curve, usual: Curve | None = None) -> Accuracy:
    """At the points of the true curve. usual: what is true but for the luck of a few repetitions, at the same points;
    orders and best numbers are then its, while errors are those of the repetitions.
    """
    numbers = [p.resources for p in true.points]
    ours = [estimated.bandwidth(n) for n in numbers]
    theirs = [(usual or true).bandwidth(n) for n in numbers]
    errors = [abs(our - b) / b for our, p in zip(ours, true.points, strict=True) for b in p.bytes_per_s]
    at, best = _first_best(ours), _first_best(theirs)
    limits = range(1, len(numbers) + 1)
    regrets = [1 - theirs[_first_best(ours[:m])] / max(theirs[:m]) for m in limits]
    bands = {p.resources: (p.bytes_per_s[0], p.bytes_per_s[-1]) for p in estimated.points}
    inside = [
        bands[p.resources][0] <= b <= bands[p.resources][1]
        for p in true.points
        if p.resources in bands
        for b in p.bytes_per_s
    ]
    return Accuracy(
        error=fmean(errors),
        best=numbers[best],
        found=numbers[at],
        regret=1 - theirs[at] / theirs[best],
        worst_regret=max(regrets),
        inside=fmean(inside) if inside else 0.0,
    )


def _first_best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)
