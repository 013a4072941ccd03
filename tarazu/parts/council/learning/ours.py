"""`tarazu`: learns what matters, and stops where it does not.

Every value is tried once. What was seen of one is drawn toward the mean of all, as far as it is noise and not what
values differ by; both are learned. At first what so looks best is used; then one is drawn from what is believed of each
(Thompson), but only of those that could be better than the best by a share that matters: where values differ by less,
or one is surely worse, nothing is explored. What was seen fades, so that in a system that changes the doubtful come
into question again; and where the value in use gives something else than it did for a while (CUSUM), all is in doubt.

Rewards are compared at equal demand (`value`), that of the interval before: a value that lets some processes fall
behind makes the demand low itself, which must not excuse it. The nodes of one decision are one observation, their
mean: they see the same second of the same application.
"""

from __future__ import annotations

import math

import msgspec

from tarazu.parts.council.learning.learner import Choice, Known, Learner
from tarazu.parts.council.learning.value import (
    MOST_REWARD,
    MOST_SQUARES,
    SLOWEST,
    UNSEEN,
    Belief,
    Factors,
    Value,
    demand_class,
    fitted,
    student,
)
from tarazu.parts.council.pattern import Pattern

LEAST = 1e-3
"""Observations; of fewer nothing is kept."""
EVERY = 8
"""Decisions of a pattern after which what was seen fades and is put together anew; before that many, each time."""
PRIOR_NOISE = 0.2
"""By what share observations vary, before any were seen; counts as PRIOR_SEEN."""
PRIOR_SEEN = 3.0
OWN_NOISE = 4.0
"""Observations that the pattern's noise counts beside that of a value's own."""
PRIOR_APART = 0.1
"""By what share values differ, before any were seen; counts as PRIOR_SEEN."""
NO_CHANGE = 1.0
ALARM = 15.0
"""CUSUM of what is used, in standard deviations: what is no change, and when one is taken as certain."""
APART = 64
"""Decisions from one such change to the next; in between another level is taken as one of all values."""
LEAST_APART = 0.04
"""No values are thought to differ by less."""
TRUSTING = 20
"""Decisions of a new pattern, or after a change, in which what looks best is used, and nothing is drawn."""
FADED = 0.1
"""What is left of an observation when its value is tried anew."""
TRIES = 2
"""Of each value after a change; at first one."""
LONG = 300
WARY = 2.0
"""After so many decisions of a pattern, or a change, so many times the standard errors: what stays for long must be
surer than what little is known of yet."""
DRAWN = 0.7
"""Of a standard error: how far what is drawn lies from what is believed."""
MATTERS = 0.02
"""By what share a value must be able to be better to be tried again."""
MOST_HOSTS = 1 << 16


class Drift(msgspec.Struct):
    """How far what a value gives has gone one way, and the rewards since it began to."""

    sum: float = 0.0
    gave: float = 0.0
    many: int = 0

    def add(self, off: float, reward: float) -> None:
        self.sum = max(0.0, self.sum + off - NO_CHANGE)
        self.gave, self.many = (self.gave + reward, self.many + 1) if self.sum else (0.0, 0)


class View:
    """What is believed of a pattern now; computed from what is known, not kept."""

    __slots__ = tuple("apart2 error factors fall mean noise2 rise sums usual wanted".split())

    def __init__(self, arms: int) -> None:
        self.factors: Factors = {}
        self.sums: list[Value] = []
        self.mean = [0.0] * arms
        self.error = [math.inf] * arms
        self.apart2 = PRIOR_APART**2
        """Variance of what values give, in units of `usual`."""
        self.usual = 1.0
        """Mean of the values', bytes a second."""
        self.noise2 = PRIOR_NOISE**2
        """Variance of observations, in units of `usual`; like for all values, whether fast or slow."""
        self.wanted = FADED
        """Observations; a value with fewer is to be tried, whatever is believed of it."""
        self.rise, self.fall = Drift(), Drift()

    def spread(self, arm: int) -> float:
        """Variance of one value's observations."""
        value, spread = self.sums[arm], self.noise2 * (self.usual * self.usual)
        if value.seen > 1:
            spread = (value.squares + OWN_NOISE * spread) / (value.seen - 1.0 + OWN_NOISE)
        return spread

    def judge(self, arm: int) -> None:
        """Put together what one value gave and what is expected of any."""
        value = self.sums[arm]
        if value.seen < self.wanted:
            self.mean[arm], self.error[arm] = self.usual, math.inf
            return
        own, prior = value.seen / self.spread(arm), 1.0 / (self.apart2 * (self.usual * self.usual))
        self.mean[arm] = (own * value.mean + prior * self.usual) / (own + prior)
        self.error[arm] = math.sqrt(1.0 / (own + prior))


def apart(values: list[Value], usual: float, noise2: float) -> float:
    """Variance of what values give, in units of `usual`: of their means, without what is noise."""
    squares, many = PRIOR_SEEN * PRIOR_APART**2, PRIOR_SEEN
    for value in values:
        noise = noise2 / value.seen
        tells = PRIOR_APART**2 / (PRIOR_APART**2 + noise)
        squares += tells * ((value.mean / usual - 1.0) ** 2 - noise)
        many += tells
    return max(LEAST_APART**2, squares / many)


class Tarazu(Learner):
    """Ours, for the nodes of a group."""

    name = "tarazu"
    half_life = 1000.0
    """Decisions of a pattern after which an observation counts half."""

    def __init__(self, arms: int, seed: int = 0) -> None:
        super().__init__(arms, seed)
        self._kept = 0.5 ** (EVERY / self.half_life)
        self._views: dict[Pattern, View] = {}
        self._round: dict[tuple[Pattern, int, int], list[float]] = {}
        self._drawn = 0.0
        self._wary = False
        self._nodes: dict[Pattern, int] = {}
        self._before: dict[str, tuple[Pattern, int]] = {}

    def _restored(self) -> None:
        self._views.clear()
        self._round.clear()
        self._nodes.clear()
        self._before.clear()

    def _forgotten(self, pattern: Pattern) -> None:
        self._nodes.pop(pattern, None)
        self._views.pop(pattern, None)

    def observe(self, host: str, pattern: Pattern, arm: int, reward: float, *, demand: float = 0.0) -> None:
        self._context(pattern, arm, reward)
        number = demand_class(demand)
        before = self._before.get(host)
        if before is None or before[1] != number or before[0] != pattern:
            if len(self._before) >= MOST_HOSTS:
                self._before.clear()
            self._before[host] = (pattern, number)
        cell = (pattern, arm, before[1] if before is not None and before[0] == pattern else number)
        if (seen := self._round.get(cell)) is None:
            self._round[cell] = [max(SLOWEST, reward), 1]
        else:
            seen[0] += max(SLOWEST, reward)
            seen[1] += 1

    def choose(self) -> Choice:
        self._learn()
        nodes = self._nodes
        if not nodes:
            if self._arm in self.without:
                self._arm = next(arm for arm in range(self.arms) if arm not in self.without)
            return Choice(self._arm, False)
        if len(nodes) == 1:
            (view,) = [self._views[pattern] for pattern in nodes]
            mean, error = view.mean, view.error
        else:
            mean, error = self._together(nodes)
        nodes.clear()
        if self.without:
            mean = [-math.inf if arm in self.without else m for arm, m in enumerate(mean)]
            error = [0.0 if arm in self.without else e for arm, e in enumerate(error)]
        if math.inf in error:
            self._arm = error.index(math.inf)
            return Choice(self._arm, True)
        top = max(mean)
        best = chosen = mean.index(top)
        bar, sure = top * (1.0 + MATTERS), WARY if self._wary else 1.0
        doubtful = [arm for arm, m in enumerate(mean) if m + sure * error[arm] > bar and arm != best]
        if doubtful:
            gauss = self._random.gauss
            drawn_by = self._drawn
            highest = gauss(top, drawn_by * error[best])
            for arm in doubtful:
                drawn = gauss(mean[arm], drawn_by * error[arm])
                if drawn > highest:
                    highest, chosen = drawn, arm
        self._arm = chosen
        return Choice(chosen, chosen != best)

    def _learn(self) -> None:
        """Take what nodes saw since the last time."""
        if not self._round:
            return
        fresh = {}
        for (pattern, arm, number), (total, many) in self._round.items():
            context = self._contexts.get(pattern)
            if context is not None:  # else forgotten meanwhile, of very many
                self._nodes[pattern] = self._nodes.get(pattern, 0) + int(many)
                fresh[pattern] = context
                self._take(context, arm, number, total / many)
        self._round.clear()
        for pattern, context in fresh.items():
            context.decisions += 1
            self._wary = context.changed > 0 or context.decisions > LONG
            self._drawn = DRAWN if context.decisions - context.changed > TRUSTING else 0.0
            if context.decisions < 2 * EVERY or context.decisions % EVERY == 0 or pattern not in self._views:
                self._renew(context)

    def _take(self, context: Known, arm: int, number: int, reward: float) -> None:
        context.cell(number, self.arms)[arm].add(reward)
        view = self._views.get(context.pattern)
        if view is None or number not in view.factors:
            self._views.pop(context.pattern, None)
            return
        factor, weight = view.factors[number]
        reward /= factor
        value = view.sums[arm]
        if value.seen >= 5.0 and weight > 0.5:
            self._watch(context, view, arm, reward)
            if self._views[context.pattern] is not view:
                return
        value.add(reward, weight)
        view.judge(arm)

    def _watch(self, context: Known, view: View, arm: int, reward: float) -> None:
        """CUSUM of what a value gives beside what it gave."""
        mean = view.sums[arm].mean
        off = max(-3.0, min(3.0, (reward - mean) / (view.usual * math.sqrt(view.noise2))))
        view.rise.add(off, reward)
        view.fall.add(-off, reward)
        for drift in (view.rise, view.fall):
            if drift.sum > ALARM:
                self._changed(context, view, arm, drift.gave / drift.many, drift.many)
                return

    def _changed(self, context: Known, view: View, arm: int, gives: float, many: int) -> None:
        """One value gives something else than it did, lately (`many`): the system is another one, and the others are to
        be tried again.
        """
        again = not context.changed or context.decisions - context.changed >= APART
        now = gives / view.sums[arm].mean
        for values in context.cells.values():
            for other, value in enumerate(values):
                if other != arm and again:
                    values[other] = Value()
                elif value.seen > 0.0:
                    keep = min(1.0, many / view.sums[arm].seen)
                    value.mean = min(MOST_REWARD, max(SLOWEST, value.mean * now))
                    value.squares = min(MOST_SQUARES, value.squares * now * now)
                    value.fade(keep if other == arm else min(1.0, 8.0 / value.seen))
        if again:
            context.changed = max(1, context.decisions)
        view.rise, view.fall = Drift(), Drift()
        self._renew(context)

    def _renew(self, context: Known) -> None:
        """Let what was seen fade, and put it together anew."""
        before = self._views.get(context.pattern)
        if context.decisions % EVERY == 0:
            for number in list(context.cells):
                total = 0.0
                for value in context.cells[number]:
                    value.fade(self._kept)
                    total += value.seen
                if total < LEAST and len(context.cells) > 1:
                    del context.cells[number]
        view = self._view(context)
        if before is not None:
            view.rise, view.fall = before.rise, before.fall
        self._views[context.pattern] = view

    def _view(self, context: Known) -> View:
        view = View(self.arms)
        view.factors, sums = fitted(context.cells, self.arms)
        view.sums = sums
        tried = [value for value in sums if value.seen > 0] or [Value(1.0, 1.0)]
        view.usual = sum(value.mean for value in tried) / len(tried)
        squares, freedom = 0.0, PRIOR_SEEN
        for value in tried:
            if value.seen > 1.0:
                squares += value.squares
                freedom += value.seen - 1.0
        view.noise2 = max(1e-8, (PRIOR_SEEN * PRIOR_NOISE**2 + squares / view.usual**2) / freedom)
        if context.changed and context.decisions - context.changed < APART:
            view.wanted = TRIES - 0.5
        view.apart2 = apart(tried, view.usual, view.noise2)
        worth = [value.seen / (value.seen + view.noise2 / view.apart2) for value in tried]
        view.usual = sum(by * value.mean for by, value in zip(worth, tried)) / sum(worth)
        for arm in range(self.arms):
            view.judge(arm)
        return view

    def _together(self, nodes: dict[Pattern, int]) -> tuple[list[float], list[float]]:
        """Nodes that see different patterns: what a value gives each beside its pattern's best, on average. A value of
        which a pattern knows nothing may be as good as its best.
        """
        mean, square = [0.0] * self.arms, [0.0] * self.arms
        total = sum(nodes.values())
        for pattern, many in nodes.items():
            view = self._views[pattern]
            top = max(view.mean) or 1.0
            for arm in range(self.arms):
                unknown = view.error[arm] == math.inf
                mean[arm] += many / total * view.mean[arm] / top
                square[arm] += (many / total * (0.5 if unknown else view.error[arm] / top)) ** 2
        return mean, [math.sqrt(s) for s in square]

    def knowledge(self) -> msgspec.Raw:
        self._learn()
        return super().knowledge()

    def beliefs(self, pattern: Pattern) -> tuple[Belief, ...]:
        self._learn()
        context = self._contexts.get(pattern)
        if context is None:
            return (UNSEEN,) * self.arms
        view = self._view(context)
        return tuple(self._belief(view, arm) for arm in range(self.arms))

    @staticmethod
    def _belief(view: View, arm: int) -> Belief:
        """Of a value's own observations; what is expected makes none more certain."""
        value = view.sums[arm]
        if value.seen < LEAST:
            return UNSEEN
        freedom = max(0.0, value.seen - 1.0)
        spread = (value.squares + OWN_NOISE * view.noise2 * view.usual**2) / (freedom + OWN_NOISE)
        within = student(freedom + OWN_NOISE) * math.sqrt(spread / value.seen)
        return Belief(value.mean, max(0.0, value.mean - within), value.mean + within, value.seen)
