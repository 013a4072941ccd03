"""What is known of one value of a lever for one pattern: a mean, its interval, and how much it rests on."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta


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
