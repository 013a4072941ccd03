"""What is known of one value of a lever for one pattern: a mean, its interval, and how much it rests on.

Rewards of different demand are made comparable: a low demand is no bad choice (section V-F). With few requests under
way a server gives few bytes a second, whatever the value. So rewards are kept by class of demand (requests queued or in
service, by powers of two), and what a class gives beside the others is taken out: reward = what the value gives x what
the demand allows, both estimated from all that was seen. Demand that is not known is a class of its own.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

CLASSES = 34
"""0: not known; 1-33: 2**-8 and less … 2**24 and more."""
LIKE_OTHERS = 0.5
"""Observations by which a value is expected to be like the others, while factors are sought."""
ROUNDS = 4
Factors = dict[int, tuple[float, float]]
"""Class of demand → (reward beside the pattern's mean, weight: how much it tells of values)."""


class Belief(NamedTuple):
    """What is known of one value for one pattern."""

    mean: float
    """Expected reward, bytes a second."""
    low: float
    high: float
    """Interval in which the mean lies with 95 %; (0, inf) where nothing was seen."""
    seen: float
    """Observations that it rests on; forgotten ones count less than one."""


UNSEEN = Belief(0.0, 0.0, math.inf, 0.0)
TWO_SIDED = (
    (1.0, 12.706),
    (1.5, 6.09),
    (2.0, 4.303),
    (3.0, 3.182),
    (4.0, 2.776),
    (5.0, 2.571),
    (6.0, 2.447),
    (8.0, 2.306),
    (10.0, 2.228),
    (15.0, 2.131),
    (20.0, 2.086),
    (30.0, 2.042),
    (60.0, 2.000),
    (120.0, 1.980),
)
"""Student's t: (degrees of freedom, the value that 95 % lie within). Between two of them the larger value is taken."""


def student(freedom: float) -> float:
    """How many standard errors 95 % lie within; math.inf below one degree of freedom."""
    if freedom < 1:
        return math.inf
    at = bisect_left(TWO_SIDED, (freedom, 0.0))
    if at < len(TWO_SIDED) and TWO_SIDED[at][0] == freedom:
        return TWO_SIDED[at][1]
    return TWO_SIDED[at - 1][1]


SLOWEST, MOST_REWARD = 1e-3, 1e18
"""Bytes a second. Less is taken as that; nothing reaches more, whose squares' sums are numbers still."""
MOST_SQUARES = 1e60


class Value(msgspec.Struct, array_like=True):
    """Sample mean and squared deviations (Welford)."""

    seen: Annotated[float, Meta(ge=0, le=1e15)] = 0.0
    """Observations; with forgetting their weights' sum."""
    mean: Annotated[float, Meta(ge=0, le=MOST_REWARD * (1 + 1e-9))] = 0.0
    """What is a little above is rounded."""
    squares: Annotated[float, Meta(ge=0, le=MOST_SQUARES)] = 0.0
    """Sum of squared deviations from the mean."""

    def add(self, reward: float, weight: float = 1.0) -> None:
        """Equation 1."""
        self.seen += weight
        off = reward - self.mean
        self.mean += weight * off / self.seen
        self.squares += weight * off * (reward - self.mean)

    def fade(self, share: float) -> None:
        """Let what was seen count less: `share` of what it counted."""
        self.seen *= share
        self.squares *= share


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
