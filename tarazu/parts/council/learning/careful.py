"""`careful`: learns for one client, and never costs it more than a hundredth of what it had before.

What was in force first is the measure: of any other value it is believed how much it gives beside that one, from what
is expected (`detect.clients`; nothing where that knows nothing) and from what was seen. The value in use is the one
whose gain is the surest. Another one is tried if it may be better by a share that matters, and if what that may cost is
covered: by a hundredth of what the client has moved (conservative exploration: Wu and others, *Conservative Bandits*,
2016), by gains so far, and by one interval to begin with, which a first guess is worth. So on a client that nothing is
known of it tries a value every few minutes, and where the guess is right it gains at once.

Demand is no excuse here: how many RPCs are in flight is what these values change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tarazu.parts.council.learner import Choice
from tarazu.parts.council.learning.levels import Known
from tarazu.parts.council.learning.ours import DRAWN, Tarazu, View
from tarazu.parts.council.pattern import PHASE, Pattern

COST = 0.01
"""Of what the first value would have moved: what trials may cost at most."""
CREDIT, MOST_CREDIT = 1.5, 30.0
"""Intervals of the first value, at the start and at most: a busy hour must not pay for a night of trials."""
ENOUGH = 5
"""Intervals of the first value before any other is tried."""
SEEN = 0.5
"""Intervals of a value from which it is known: one that was taken back had one, which fades."""
MATTERS = 0.02
"""By what share a value must be able to be better."""
HALF_LIFE = 10_000.0
"""Intervals of a pattern after which one counts half."""
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
"""Standard deviation of what values give (natural logarithm), where nothing is expected."""


class CarefulKnown(Known, kw_only=True):
    first: int
    """The value that was in force before anything was decided."""
    credit: float = CREDIT
    """Intervals of it that trials may cost now."""


class Careful(Tarazu):
    """For a council of one node."""

    name = "careful"
    kind = CarefulKnown

    def __init__(self, arms: int, seed: int = 0) -> None:
        super().__init__(arms, seed, half_life=HALF_LIFE)
        self._first: int | None = None
        self._expected: dict[Pattern, tuple[float, list[tuple[float, float]]]] = {}
        """Intervals, and of each value the mean of what was expected in them: (mean, standard deviation)."""
        self._dwell = 0.0
        """Intervals between choices."""
        self._mix: dict[Pattern, float] = {}
        """Intervals of each pattern lately."""
        self._run: tuple[Pattern | None, int] = (None, 0)
        """The last pattern, and how many intervals followed each other in it."""

    def _restored(self) -> None:
        super()._restored()
        self._expected.clear()
        self._mix.clear()
        firsts = [context.first for context in self._contexts.values() if isinstance(context, CarefulKnown)]
        self._first = firsts[0] if firsts else None

    def _new(self, pattern: Pattern) -> Known:
        assert self._first is not None
        return CarefulKnown(pattern=pattern, cells={}, first=self._first)

    def _check(self, context: Known) -> bool:
        return (
            isinstance(context, CarefulKnown)
            and 0 <= context.first < self.arms
            and -1e6 < context.credit <= MOST_CREDIT
            and super()._check(context)
        )

    def _forgotten(self, pattern: Pattern) -> None:
        super()._forgotten(pattern)
        self._expected.pop(pattern, None)
        self._mix.pop(pattern, None)

    def expect(self, pattern: Pattern, arm: int, gains: Sequence[tuple[float, float]]) -> None:
        if arm != self._first or len(gains) != self.arms:
            return
        many, means = self._expected.get(pattern, (0.0, [(0.0, 0.0)] * self.arms))
        share = 1.0 / (many + 1.0)
        self._expected[pattern] = (
            min(many + 1.0, 20.0),
            [(m + share * (mean - m), d + share * (dev - d)) for (m, d), (mean, dev) in zip(means, gains)],
        )

    def observe(
        self, host: str, pattern: Pattern, arm: int, reward: float, *, demand: float = 0.0, at_s: float = 0.0
    ) -> None:
        if self._first is None:
            self._first = self._arm = arm
        super().observe(host, pattern, arm, reward, at_s=at_s)
        self._learn()
        self._mix = {each: FADES * many for each, many in self._mix.items() if many > LEAST_SHARE}
        self._mix[pattern] = self._mix.get(pattern, 0.0) + 1.0
        self._run = (pattern, self._run[1] + 1 if pattern == self._run[0] else 1)
        if self._run[1] >= PHASE:
            self._mix = {pattern: float(PHASE)}
        context, view = self._contexts[pattern], self._views.get(pattern)
        if isinstance(context, CarefulKnown) and view is not None:
            base = view.sums[context.first]
            if arm == context.first:
                context.credit = min(MOST_CREDIT, context.credit + COST)
            elif base.seen >= SEEN:
                gained = max(-1.0, min(1.0, reward / base.mean - 1.0))
                context.credit = min(MOST_CREDIT, context.credit + gained + COST)

    def choose(self, at_s: float = 0.0) -> Choice:
        self._learn()
        nodes = dict(self._nodes)
        self._nodes.clear()
        if not nodes or self._first is None:
            return Choice(self._arm, False)
        pattern = max(nodes, key=lambda each: nodes[each])
        self._dwell = max(1.0, float(sum(nodes.values())))
        context, view = self._contexts[pattern], self._views[pattern]
        assert isinstance(context, CarefulKnown)
        shares = self._shares()
        credit = sum(share * self._credit(each) for each, share in shares.items())
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

    def _credit(self, pattern: Pattern) -> float:
        context = self._contexts[pattern]
        assert isinstance(context, CarefulKnown)
        return context.credit

    def _gain_of(self, shares: Mapping[Pattern, float], arm: int) -> tuple[float, float]:
        """As `gain`, of all that the client does by turns: what serves the most of it must not harm the rest."""
        gains = [(share, *self.gain(pattern, arm)) for pattern, share in shares.items()]
        return sum(by * mean for by, mean, _ in gains), math.hypot(*(by * error for by, _, error in gains))

    def gain(self, pattern: Pattern, arm: int) -> tuple[float, float]:
        """Of a value beside the first: natural logarithm, and its standard error, from what is expected and seen."""
        context, view = self._contexts[pattern], self._views[pattern]
        assert isinstance(context, CarefulKnown)
        if arm == context.first:
            return 0.0, 0.0
        _, means = self._expected.get(pattern, (0.0, [(0.0, APART)] * self.arms))
        mean, error = means[arm]
        weight = 1.0 / max(error, 1e-3) ** 2
        own, base = view.sums[arm], view.sums[context.first]
        if own.seen >= SEEN and base.seen > 0.0:
            noise = _relative(view, arm) / own.seen + _relative(view, context.first) / base.seen
            seen = 1.0 / max(noise, 1e-6)
            mean = (weight * mean + seen * math.log(own.mean / base.mean)) / (weight + seen)
            weight += seen
        return mean, math.sqrt(1.0 / weight)


def _relative(view: View, arm: int) -> float:
    """Variance of one observation, in units of the value's mean."""
    return ALIKE * view.spread(arm) / view.sums[arm].mean ** 2
