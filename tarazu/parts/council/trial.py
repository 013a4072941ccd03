"""Whether a value that has just come made things worse: the same patterns on the same nodes, before and after.

What is known of both values from earlier is weighed with it, as so many rounds: a few slow intervals are no proof
against a value that was the better one in fifty.

Demand-corrected (paper, section V-F: a low demand is not a bad choice): where both are known, a node whose requests
are fewer than before is expected to move as many bytes fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import NamedTuple

from tarazu.parts.council.pattern import Pattern

MEMORY = 20
"""Intervals that a mean looks back at most."""
PATTERNS = 8
"""Of one node, between two changes."""
WITHOUT = 2
"""Intervals before, at least: one alone says nothing of how much they differ."""
KNOWN = 10.0
"""Rounds that what is known counts at most: a system that has changed shows in a few more."""


class TrialRewards:
    """Rewards of one node with one pattern since the last change."""

    __slots__ = ("count", "demand", "mean", "spread")

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self.spread = 0.0
        """Mean of the squared differences from the mean."""
        self.demand = 0.0

    def add(self, reward: float, demand: float) -> None:
        self.count += 1
        share = 1.0 / min(self.count, MEMORY)
        off = reward - self.mean
        self.mean += share * off
        self.spread += share * (off * (reward - self.mean) - self.spread)
        self.demand += share * (demand - self.demand)


Before = dict[Pattern, TrialRewards]


class Earlier(NamedTuple):
    """What is known of a value beside the one before it, for one pattern."""

    ratio: float
    error: float
    """One standard error of `ratio`."""
    intervals: float
    """That it counts for."""
    noise: float
    """Variance of one interval, in units of its mean."""


class _OfPattern:
    """What came of one pattern in a trial."""

    __slots__ = ("earlier", "expected", "got", "intervals", "variance")

    def __init__(self, earlier: Earlier | None) -> None:
        self.earlier = earlier
        self.got = self.expected = self.variance = 0.0
        self.intervals = 0


class Verdict(NamedTuple):
    share: float
    """What was moved, over what was expected of the value before."""
    uncertain: float
    """How far `share` may be off: one standard error."""
    intervals: int


class Trial:
    """A change of one lever, from `before` (None: what the nodes had) to `value`."""

    def __init__(
        self,
        lever: str,
        before: str | None,
        value: str,
        since: float,
        had: Collection[str] = (),
        known: Callable[[Pattern], Earlier | None] = lambda pattern: None,
    ) -> None:
        """`had`: hosts that had the value already. There nothing changes, and nothing is to be compared. `known`: what
        is known of it from earlier; asked once for each pattern.
        """
        self.lever = lever
        self.before = before
        self.value = value
        self.since = since
        self.had = frozenset(had)
        self._known = known
        self._patterns: dict[Pattern, _OfPattern] = {}

    def add(self, pattern: Pattern, before: TrialRewards, reward: float, demand: float) -> None:
        """One interval under the new value, of a node and pattern that was seen before."""
        if before.count < WITHOUT:
            return
        of = self._patterns.get(pattern)
        if of is None:
            of = self._patterns[pattern] = _OfPattern(self._known(pattern))
        expected = before.mean
        if demand > 0 and before.demand > 0:
            expected *= min(1.0, demand / before.demand)
        spread = before.spread
        if of.earlier is not None:
            spread = max(spread, of.earlier.noise * expected * expected)
        of.got += reward
        of.expected += expected
        of.variance += spread * (1.0 + 1.0 / min(before.count, MEMORY))
        of.intervals += 1

    def verdict(self) -> Verdict | None:
        """None while nothing can be compared."""
        got = expected = variance = 0.0
        intervals = 0
        for of in self._patterns.values():
            got, expected, variance = got + of.got, expected + of.expected, variance + of.variance
            intervals += of.intervals
            if of.earlier is not None:
                share = of.earlier.intervals * of.expected / of.intervals
                got, expected = got + share * of.earlier.ratio, expected + share
                variance += (share * of.earlier.error) ** 2
        if not intervals or expected <= 0:
            return None
        return Verdict(got / expected, math.sqrt(variance) / expected, intervals)

    def is_worse(self, by: float) -> bool:
        """Slower by this share, and not by chance."""
        verdict = self.verdict()
        return verdict is not None and verdict.share + verdict.uncertain < 1.0 - by
