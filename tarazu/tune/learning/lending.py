"""Similar patterns lend each other what they know: how values compare, not how fast they are.

What is lent is each value's reward beside the mean of all, from the patterns nearest by `pattern.distance`. It is worth
as many observations as it has turned out to be: where it was compared with a pattern's own observations, the squares of
what it was wrong by are its variance, at first that of a stranger's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tarazu.tune.learning.value import Value
from tarazu.tune.pattern import Pattern, distance

FARTHEST = 4.0
NEAREST = 6
"""Patterns that lend."""
STRANGER = 0.25
"""By what share a lent value is wrong before anything was compared."""
SURE = 0.03
"""No lent value is trusted closer than that."""
COMPARED = 4.0
"""Comparisons that the stranger's word counts as."""
Lent = list[float | None]
"""By value: reward beside the mean; None: nobody knows."""


def nearest(pattern: Pattern, others: Iterable[Pattern]) -> list[tuple[Pattern, float]]:
    """(pattern, weight) of those that may lend."""
    far = ((distance(pattern, other), other) for other in others if other != pattern)
    near = sorted((pair for pair in far if pair[0] <= FARTHEST), key=lambda pair: pair[0])
    return [(other, 1.0 / (1.0 + away) ** 2) for away, other in near[:NEAREST]]


def shape(values: Sequence[Value]) -> Lent:
    """Of a pattern's own observations; all None where fewer than half of the values were seen."""
    seen = [value.mean for value in values if value.seen >= 0.5]
    if 2 * len(seen) < len(values):
        return [None] * len(values)
    middle = sum(seen) / len(seen)
    return [value.mean / middle if value.seen >= 0.5 else None for value in values]


def combined(shapes: Sequence[tuple[Lent, float]], arms: int) -> Lent:
    found: Lent = []
    for arm in range(arms):
        total = weights = 0.0
        for of, weight in shapes:
            share = of[arm]
            if share is not None:
                total += weight * share
                weights += weight
        found.append(total / weights if weights else None)
    return found


def level(values: Sequence[Value], lent: Lent) -> float:
    """Bytes a second by which what is lent fits what was seen; 0 where they have nothing in common."""
    total = weights = 0.0
    for value, share in zip(values, lent):
        if share and value.seen > 0:
            total += value.seen * value.mean / share
            weights += value.seen
    return total / weights if weights else 0.0


def wrong(values: Sequence[Value], lent: Lent, noise2: float) -> tuple[float, float]:
    """(sum of squared errors of what is lent, beyond what observations vary by; comparisons)."""
    of = level(values, lent)
    squares = many = 0.0
    if of > 0:
        for value, share in zip(values, lent):
            if share and value.seen >= 0.5:
                off = value.mean / (share * of) - 1.0
                squares += max(0.0, off * off - noise2 / value.seen)
                many += 1.0
    return (squares, many - 1.0) if many > 1 else (0.0, 0.0)
