"""What is known of one value of a lever for one pattern: a mean, its interval, and how much it rests on."""

from __future__ import annotations

import math
from bisect import bisect_left

import msgspec

from tarazu.parts.council.learner import Belief

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


class Value(msgspec.Struct, array_like=True):
    """Sample mean and squared deviations (Welford)."""

    seen: float = 0.0
    """Observations; with forgetting their weights' sum."""
    mean: float = 0.0
    squares: float = 0.0
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

    @property
    def fits(self) -> bool:
        """Whether it can be what observations gave; for what comes from a file."""
        finite = all(math.isfinite(x) and x >= 0 for x in (self.seen, self.mean, self.squares))
        return finite and self.seen <= 1e15 and self.mean <= ROUNDED and self.squares <= MOST_SQUARES

    def belief(self) -> Belief:
        """Student's interval; of one observation nothing is known about how they vary."""
        if self.seen <= 0:
            return UNSEEN
        if self.seen < 2:
            return Belief(self.mean, 0.0, math.inf, self.seen)
        error = math.sqrt(self.squares / (self.seen - 1) / self.seen)
        within = student(self.seen - 1) * error
        return Belief(self.mean, max(0.0, self.mean - within), self.mean + within, self.seen)


MOST_REWARD = 1e18
"""Bytes a second that nothing reaches: sums of its squares are numbers still."""
ROUNDED = MOST_REWARD * (1 + 1e-9)
"""What a mean of such may come to."""
MOST_SQUARES = 1e60
