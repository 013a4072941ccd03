"""Algorithm 1 with one idea more: rewards corrected for demand, patterns that lend."""

from __future__ import annotations

from tarazu.sim.tuning.learning import lending
from tarazu.sim.tuning.learning.epsilon import EpsilonGreedy, Greedy, Values, highest
from tarazu.tune.learner import Belief
from tarazu.tune.learning.levels import SLOWEST, Known, OfLevels, demand_class, fitted
from tarazu.tune.learning.value import UNSEEN
from tarazu.tune.pattern import Pattern


class ByDemand(OfLevels, Greedy[Known]):
    """Rewards at equal demand (`levels`)."""

    name = "demand"

    def _update(self, context: Known, arm: int, reward: float, demand: float) -> None:
        context.cell(demand_class(demand), self.arms)[arm].add(max(SLOWEST, reward))

    def _preferred(self, context: Known) -> int:
        return highest([value.mean for value in fitted(context.cells, self.arms)[1]])

    def beliefs(self, pattern: Pattern) -> tuple[Belief, ...]:
        known = self._contexts.get(pattern)
        if known is None:
            return (UNSEEN,) * self.arms
        return tuple(value.belief() for value in fitted(known.cells, self.arms)[1])


class Neighbours(EpsilonGreedy):
    """A value that was not tried is expected to do as in similar patterns (`lending`); tried, it speaks for itself."""

    name = "neighbours"

    def _preferred(self, context: Values) -> int:
        values = context.values
        means = [value.mean for value in values]
        if len(self._contexts) > 1 and not all(value.seen for value in values):
            shapes = [
                (lending.shape(self._contexts[pattern].values), weight)
                for pattern, weight in lending.nearest(context.pattern, self._contexts)
            ]
            lent = lending.combined(shapes, self.arms)
            level = lending.level(values, lent)
            means = [
                value.mean if value.seen else (share or 0.0) * level for value, share in zip(values, lent)
            ]
        return highest(means)
