"""Whether a value that has just come made things worse: the same patterns on the same nodes, before and after.

Demand-corrected (paper, section V-F: a low demand is not a bad choice): where both are known, a node whose requests
are fewer than before is expected to move as many bytes fewer.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

from tarazu.tune.pattern import Pattern

MEMORY = 20
"""Intervals that a mean looks back at most."""
PATTERNS = 8
"""Of one node, between two changes."""
WITHOUT = 2
"""Intervals before, at least: one alone says nothing of how much they differ."""


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


class Verdict(NamedTuple):
    share: float
    """What was moved, over what was expected of the value before."""
    uncertain: float
    """How far `share` may be off: one standard error."""
    intervals: int


class Trial:
    """A change of one lever, from `before` (None: what the nodes had) to `value`."""

    def __init__(
        self, lever: str, before: str | None, value: str, since: float, had: Collection[str] = ()
    ) -> None:
        """`had`: hosts that had the value already. There nothing changes, and nothing is to be compared."""
        self.lever = lever
        self.before = before
        self.value = value
        self.since = since
        self.had = frozenset(had)
        self._got = 0.0
        self._expected = 0.0
        self._variance = 0.0
        self._intervals = 0

    def add(self, before: TrialRewards, reward: float, demand: float) -> None:
        """One interval under the new value, of a node and pattern that was seen before."""
        if before.count < WITHOUT:
            return
        expected = before.mean
        if demand > 0 and before.demand > 0:
            expected *= min(1.0, demand / before.demand)
        self._got += reward
        self._expected += expected
        self._variance += before.spread * (1.0 + 1.0 / min(before.count, MEMORY))
        self._intervals += 1

    def verdict(self) -> Verdict | None:
        """None while nothing can be compared."""
        if not self._intervals or self._expected <= 0:
            return None
        return Verdict(
            self._got / self._expected, math.sqrt(self._variance) / self._expected, self._intervals
        )

    def is_worse(self, by: float) -> bool:
        """Slower by this share, and not by chance."""
        verdict = self.verdict()
        return verdict is not None and verdict.share + verdict.uncertain < 1.0 - by
