"""`careful`: learns for one client, and never costs it more than a hundredth of what it had before.

What was in force first is the measure: of any other value it is believed how much it gives beside that one, nothing
before any was seen. The value in use is the one whose gain is the surest. Another one is tried if it may be better by a
share that matters, and if what that may cost is covered: by a hundredth of what the client has moved (conservative
exploration: Wu and others, *Conservative Bandits*, 2016), by gains so far, and by one interval to begin with. So it
tries a value every few minutes.

Demand is no excuse here: how many RPCs are in flight is what these values change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tarazu.parts.council.learning.learner import MOST_CREDIT, Choice, Known
from tarazu.parts.council.learning.ours import DRAWN, MATTERS, Tarazu, View
from tarazu.parts.council.pattern import PHASE, Pattern

COST = 0.01
"""Of what the first value would have moved: what trials may cost at most."""
CREDIT = 1.5
"""Intervals of the first value, at the start; `MOST_CREDIT` at most: a busy hour must not pay for a night of trials."""
ENOUGH = 5
"""Intervals of the first value before any other is tried."""
SEEN = 0.5
"""Intervals of a value from which it is known: one that was taken back had one, which fades."""
SETTLED = 200
"""Intervals of a pattern after which what may still be better is tried again."""
ALIKE = 4.0
"""Intervals that follow each other are alike: so many count as one."""
SURE = 1.0
"""Standard errors."""
FADES, LEAST_SHARE = 0.95, 0.01
"""What is left of an interval at the next one, in the mixture of patterns by which a value is chosen: of those that a
client shows by turns each counts; after `PHASE` intervals of one it alone does."""
APART = 0.15
"""Standard deviation of what values give (natural logarithm), before any were seen."""


class Careful(Tarazu):
    """For a council of one node."""

    name = "careful"
    half_life = 10_000.0

    def __init__(self, arms: int, seed: int = 0) -> None:
        super().__init__(arms, seed)
        self._first: int | None = None
        self._dwell = 0.0
        """Intervals between choices."""
        self._mix: dict[Pattern, float] = {}
        """Intervals of each pattern lately."""
        self._run: tuple[Pattern | None, int] = (None, 0)
        """The last pattern, and how many intervals followed each other in it."""

    def _restored(self) -> None:
        super()._restored()
        self._mix.clear()
        self._first = next((context.first for context in self._contexts.values()), None)

    def _new(self, pattern: Pattern) -> Known:
        assert self._first is not None
        return Known(pattern=pattern, cells={}, first=self._first, credit=CREDIT)

    def _forgotten(self, pattern: Pattern) -> None:
        super()._forgotten(pattern)
        self._mix.pop(pattern, None)

    def observe(self, host: str, pattern: Pattern, arm: int, reward: float, *, demand: float = 0.0) -> None:
        if self._first is None:
            self._first = self._arm = arm
        super().observe(host, pattern, arm, reward)
        self._learn()
        self._mix = {each: FADES * many for each, many in self._mix.items() if many > LEAST_SHARE}
        self._mix[pattern] = self._mix.get(pattern, 0.0) + 1.0
        self._run = (pattern, self._run[1] + 1 if pattern == self._run[0] else 1)
        if self._run[1] >= PHASE:
            self._mix = {pattern: float(PHASE)}
        context, view = self._contexts[pattern], self._views.get(pattern)
        if view is not None:
            base = view.sums[context.first]
            if arm == context.first:
                context.credit = min(MOST_CREDIT, context.credit + COST)
            elif base.seen >= SEEN:
                gained = max(-1.0, min(1.0, reward / base.mean - 1.0))
                context.credit = min(MOST_CREDIT, context.credit + gained + COST)

    def choose(self) -> Choice:
        self._learn()
        nodes = dict(self._nodes)
        self._nodes.clear()
        if not nodes or self._first is None:
            return Choice(self._arm, False)
        pattern = max(nodes, key=lambda each: nodes[each])
        self._dwell = max(1.0, float(sum(nodes.values())))
        context, view = self._contexts[pattern], self._views[pattern]
        shares = self._shares()
        credit = sum(share * self._contexts[each].credit for each, share in shares.items())
        if context.first in self.without:
            self._arm = next(arm for arm in range(self.arms) if arm not in self.without)
            return Choice(self._arm, False)
        if view.sums[context.first].seen < ENOUGH:
            self._arm = context.first
            return Choice(self._arm, False)
        gains = {arm: self._gain_of(shares, arm) for arm in range(self.arms) if arm not in self.without}
        if credit < 0:
            self._arm = context.first
            return Choice(self._arm, False)
        known = {arm for arm in gains if view.sums[arm].seen >= SEEN}
        surest = max(known, key=lambda arm: (gains[arm][0] - SURE * gains[arm][1], arm == context.first))
        covered = {arm for arm in gains if self._costs(*gains[arm]) <= credit}
        new = [arm for arm in covered - known if self._may_gain(*gains[arm])]
        if new:
            self._arm = max(sorted(new), key=lambda arm: gains[arm][0])
        elif context.decisions > SETTLED:
            self._arm = self._drawn_of(gains, known & covered, surest)
        else:
            self._arm = surest
        return Choice(self._arm, self._arm != surest)

    def _costs(self, mean: float, error: float) -> float:
        """Intervals of the first value that a trial may cost."""
        return self._dwell * max(0.0, 1.0 - math.exp(mean - SURE * error))

    @staticmethod
    def _may_gain(mean: float, error: float, than: float = 0.0) -> bool:
        return mean + SURE * error > than + math.log1p(MATTERS)

    def _drawn_of(self, gains: dict[int, tuple[float, float]], of: set[int], surest: int) -> int:
        """The surest, or one of those that may still be better (Thompson)."""
        best, error = gains[surest]
        chosen, highest = surest, self._random.gauss(best, DRAWN * error)
        for arm in sorted(of - {surest}):
            if self._may_gain(*gains[arm], best):
                drawn = self._random.gauss(gains[arm][0], DRAWN * gains[arm][1])
                if drawn > highest:
                    highest, chosen = drawn, arm
        return chosen

    def _shares(self) -> dict[Pattern, float]:
        """Pattern → its share of what the client does now."""
        total = sum(self._mix.values())
        return {pattern: many / total for pattern, many in self._mix.items()}

    def _gain_of(self, shares: Mapping[Pattern, float], arm: int) -> tuple[float, float]:
        """As `gain`, of all that the client does by turns: what serves the most of it must not harm the rest."""
        gains = [(share, *self.gain(pattern, arm)) for pattern, share in shares.items()]
        return sum(by * mean for by, mean, _ in gains), math.hypot(*(by * error for by, _, error in gains))

    def gain(self, pattern: Pattern, arm: int) -> tuple[float, float]:
        """Of a value beside the first: natural logarithm, and its standard error."""
        context, view = self._contexts[pattern], self._views[pattern]
        if arm == context.first:
            return 0.0, 0.0
        mean, weight = 0.0, 1.0 / APART**2
        own, base = view.sums[arm], view.sums[context.first]
        if own.seen >= SEEN and base.seen > 0.0:
            noise = _relative(view, arm) / own.seen + _relative(view, context.first) / base.seen
            seen = 1.0 / max(noise, 1e-6)
            mean = seen * math.log(own.mean / base.mean) / (weight + seen)
            weight += seen
        return mean, math.sqrt(1.0 / weight)


def _relative(view: View, arm: int) -> float:
    """Variance of one observation, in units of the value's mean."""
    return ALIKE * view.spread(arm) / view.sums[arm].mean ** 2
