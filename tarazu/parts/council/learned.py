"""A lever of a council: its values, with their learner; and what is known of one value beside another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from tarazu.parts.council.learner import Learner
from tarazu.parts.council.pattern import Pattern
from tarazu.parts.council.trial import KNOWN, Earlier

BARRED_DWELLS = 10.0
"""A value that was taken back is not tried for so many dwells, twice as many the next time …"""
MOST_BARRED_DWELLS = 1000.0


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
