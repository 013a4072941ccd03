"""A lever of a council: its values with their learner; and whether one of them that has just come made things worse:
the same patterns on the same nodes, before and after.

What is known of both values from earlier is weighed with it, as so many rounds: a few slow intervals are no proof
against a value that was the better one in fifty.

Demand-corrected (paper, section V-F: a low demand is not a bad choice): where both are known, a node whose requests
are fewer than before is expected to move as many bytes fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from tarazu.parts.council.learning.learner import Learner
from tarazu.parts.council.pattern import Pattern

MEMORY = 20
"""Intervals that a mean looks back at most."""
PATTERNS = 8
"""Of one node, between two changes."""
WITHOUT = 2
"""Intervals before, at least: one alone says nothing of how much they differ."""
KNOWN = 10.0
"""Rounds that what is known counts at most: a system that has changed shows in a few more."""
BARRED_DWELLS = 10.0
"""A value that was taken back is not tried for so many dwells, twice as many the next time …"""
MOST_BARRED_DWELLS = 1000.0


class TrialRewards(msgspec.Struct):
    """Rewards of one node with one pattern since the last change."""

    count: int = 0
    mean: float = 0.0
    spread: float = 0.0
    """Mean of the squared differences from the mean."""
    demand: float = 0.0

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


class _OfPattern(msgspec.Struct):
    """What came of one pattern in a trial."""

    earlier: Earlier | None
    got: float = 0.0
    expected: float = 0.0
    variance: float = 0.0
    intervals: int = 0


class Verdict(NamedTuple):
    share: float
    """What was moved, over what was expected of the value before."""
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
        self.lever, self.before, self.value, self.since = lever, before, value, since
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

    def worse(self, by: float) -> Verdict | None:
        """None where it is not slower by this share, or only by chance, or nothing can be compared yet."""
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
        share = got / expected
        return Verdict(share, intervals) if share + math.sqrt(variance) / expected < 1.0 - by else None


class Bar(msgspec.Struct):
    until: float
    times: int
    refused: bool = False
    """No node took it: the learner is to choose another one."""


class LearnedLever:
    def __init__(self, listed: Sequence[str], learner: Callable[[int], Learner], own: str = "") -> None:
        """`learner`: makes one of so many values. `own`: what the one client had first, where that is none of the
        listed values: it is never set, but comes back when nothing is.
        """
        self.listed, self.own = tuple(listed), own
        self.values = (*self.listed, own) if own else self.listed
        self.arms = {value: arm for arm, value in enumerate(self.values)}
        self.make = learner
        self.learner = learner(len(self.values))
        self.barred: dict[str, Bar] = {}
        self.fresh = False
        """Something was seen of it since its learner chose."""
        self._strange = ("", 0)
        """What is there though it is no value, and how often it was seen."""

    def with_own(self, own: str) -> LearnedLever:
        """As it begins anew with this value of the client's own."""
        return LearnedLever(self.listed, self.make, own)

    def seen_strange(self, value: str) -> int:
        """How often this value, none of the lever's, was seen without another one between; empty: none is there."""
        before, count = self._strange
        self._strange = (value, count + 1 if value and value == before else 1 if value else 0)
        return self._strange[1]

    def bar(self, value: str, now: float, dwell_s: float, *, refused: bool) -> None:
        bar = self.barred.setdefault(value, Bar(0.0, 0))
        barred_s = dwell_s * min(MOST_BARRED_DWELLS, BARRED_DWELLS * 2.0 ** min(bar.times, 16))
        bar.until, bar.times, bar.refused = now + barred_s, bar.times + 1, refused

    def refused(self, now: float) -> frozenset[int]:
        return frozenset(
            self.arms[value] for value, bar in self.barred.items() if bar.refused and now < bar.until
        )

    def earlier(self, value: str, former: str, pattern: Pattern, nodes: int) -> Earlier | None:
        """What is known of a value beside another one; None where one of them was not seen. `nodes`: that speak."""
        if value not in self.arms or former not in self.arms:
            return None
        beliefs = self.learner.beliefs(pattern)
        new, old = beliefs[self.arms[value]], beliefs[self.arms[former]]
        rounds = min(new.seen, old.seen, KNOWN)
        if rounds < 1.0 or new.mean <= 0 or old.mean <= 0:
            return None
        errors = []
        for each in (new, old):
            width = each.high - each.low  # of 95 %: some four standard errors
            errors.append(width / 4.0 / each.mean if math.isfinite(width) else 0.0)
        ratio = new.mean / old.mean
        return Earlier(ratio, ratio * math.hypot(*errors), rounds * nodes, errors[1] ** 2 * old.seen)
