"""Rewards of different demand made comparable: a low demand is no bad choice (section V-F).

With few requests under way a server gives few bytes a second, whatever the value. So rewards are kept by class of
demand (requests queued or in service, by powers of two), and what a class gives beside the others is taken out: reward
= what the value gives x what the demand allows, both estimated from all that was seen. Demand that is not known is a
class of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tarazu.parts.council.learning.value import SLOWEST, Value

CLASSES = 34
"""0: not known; 1-33: 2**-8 and less … 2**24 and more."""
LIKE_OTHERS = 0.5
"""Observations by which a value is expected to be like the others, while factors are sought."""
ROUNDS = 4
Factors = dict[int, tuple[float, float]]
"""Class of demand → (reward beside the pattern's mean, weight: how much it tells of values)."""


def demand_class(demand: float) -> int:
    if not demand > 0:
        return 0
    return 9 + max(-8, min(24, round(math.log2(demand))))


def fitted(cells: Mapping[int, Sequence[Value]], arms: int) -> tuple[Factors, list[Value]]:
    """Factors of classes, and each value's rewards without them, as bytes a second at the usual demand.

    A class that allows little tells little, for its limit is the demand: it weighs as much as it allows.
    """
    if len(cells) == 1:
        ((number, values),) = cells.items()
        return {number: (1.0, 1.0)}, [Value(v.seen, v.mean, v.squares) for v in values]
    counts = {number: sum(value.seen for value in values) for number, values in cells.items()}
    total = sum(counts.values())
    many = 0.25 * max(counts.values())
    # Values differ by little, what demands allow by any factor: so what only one value was seen with is the demand's.
    beside, raw = [1.0] * arms, [1.0] * arms
    factor, weight = dict.fromkeys(cells, 1.0), dict.fromkeys(cells, 1.0)
    for _ in range(ROUNDS):
        for number, values in cells.items():
            rewards = sum(v.seen * v.mean / by for v, by in zip(values, beside) if v.seen > 0)
            factor[number] = max(SLOWEST, rewards / counts[number]) if counts[number] > 0 else 1.0
        most = max(factor[number] for number in cells if counts[number] >= many)
        weight = {number: min(1.0, value / most) for number, value in factor.items()}
        for arm in range(arms):
            seen = gave = 0.0
            for number, values in cells.items():
                counted = weight[number] * values[arm].seen
                seen += counted
                gave += counted * values[arm].mean / factor[number]
            raw[arm] = gave / seen if seen > 0 else 1.0
            beside[arm] = max(1e-3, (gave + LIKE_OTHERS) / (seen + LIKE_OTHERS))
    usual = sum(counts[number] * factor[number] for number in cells) / total if total > 0 else 1.0
    factor = {number: value / usual for number, value in factor.items()}
    means = [usual * share for share in raw]
    sums = []
    for arm in range(arms):
        value = Value(0.0, means[arm], 0.0)
        for number, values in cells.items():
            one, by = values[arm], factor[number]
            value.seen += weight[number] * one.seen
            off = one.mean / by - means[arm]
            value.squares += weight[number] * (one.squares / by**2 + one.seen * off**2)
        sums.append(value if value.seen > 0 else Value())
    return {number: (factor[number], weight[number]) for number in cells}, sums
