"""Exploration that knows how little it knows: upper confidence bounds, Thompson sampling. Both try each value once."""

from __future__ import annotations

import math

from tarazu.errors import BadInput
from tarazu.parts.council.study.learning.epsilon import EpsilonGreedy, Values, highest

ONE_SEEN = 0.2
"""By what share observations are taken to vary where a value was seen once."""


class Ucb(EpsilonGreedy):
    """UCB1 (Auer et al. 2002): highest of mean + `width` x sqrt(2 ln N / n), in units of the best mean. `width` 1 is
    the textbook's, for rewards between 0 and 1; bandwidths of one pattern vary by less.
    """

    name = "ucb"

    def __init__(self, arms: int, seed: int = 0, width: float = 0.2) -> None:
        super().__init__(arms, seed, 0.0)
        if not width > 0:
            raise BadInput("width", "a number above 0", width)
        self._width = width

    def _preferred(self, context: Values) -> int:
        total = 0.0
        for arm, value in enumerate(context.values):
            if arm in self.without:
                continue
            if value.seen <= 0:
                return arm
            total += value.seen
        width = self._width * max([value.mean for value in context.values]) * math.sqrt(2.0 * math.log(total))
        return highest(
            [
                -1.0 if arm in self.without else value.mean + width / math.sqrt(value.seen)
                for arm, value in enumerate(context.values)
            ]
        )

    def _share(self) -> float:
        return -1.0


class Thompson(EpsilonGreedy):
    """Thompson sampling: the highest of one draw from each value's normal belief, with its own variance."""

    name = "thompson"

    def __init__(self, arms: int, seed: int = 0) -> None:
        super().__init__(arms, seed, 0.0)

    def _preferred(self, context: Values) -> int:
        drawn = []
        for arm, value in enumerate(context.values):
            if arm in self.without:
                drawn.append(-math.inf)
                continue
            if value.seen <= 0:
                return arm
            spread = (value.squares + (ONE_SEEN * value.mean) ** 2) / value.seen
            drawn.append(self._random.gauss(value.mean, math.sqrt(spread / value.seen)))
        return highest(drawn)

    def _share(self) -> float:
        return -1.0
