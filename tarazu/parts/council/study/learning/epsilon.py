"""Algorithm 1 of Bez et al. (Adaptive Request Scheduling, section IV) and the variants that its text names."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable

from tarazu.errors import BadInput
from tarazu.parts.council.learner import Belief, Choice
from tarazu.parts.council.learning.levels import SLOWEST, Known, OfLevels, demand_class, fitted
from tarazu.parts.council.learning.memory import C, Context, Remembering
from tarazu.parts.council.learning.value import UNSEEN, Value
from tarazu.parts.council.pattern import Pattern


class Values(Context, kw_only=True):
    """One value for each arm."""

    values: list[Value]


class OfValues(Remembering[Values]):
    """A learner that keeps nothing but values."""

    kind = Values

    def _new(self, pattern: Pattern) -> Values:
        return Values(pattern=pattern, values=[Value() for _ in range(self.arms)])

    def _check(self, context: Values) -> bool:
        return len(context.values) == self.arms and all(value.fits for value in context.values)

    def beliefs(self, pattern: Pattern) -> tuple[Belief, ...]:
        known = self._contexts.get(pattern)
        return tuple(value.belief() for value in known.values) if known else (UNSEEN,) * self.arms


def highest(scores: Iterable[float]) -> int:
    """The first of the highest."""
    best, best_arm = -math.inf, 0
    for arm, score in enumerate(scores):
        if score > best:
            best, best_arm = score, arm
    return best_arm


class Greedy(Remembering[C]):
    """Lines 10 to 18: each host's choice, then chance or the majority. Subclasses say what is preferred."""

    def __init__(self, arms: int, seed: int = 0, epsilon: float = 0.15) -> None:
        super().__init__(arms, seed)
        if not 0.0 <= epsilon <= 1.0:
            raise BadInput("epsilon", "0 to 1", epsilon)
        self._epsilon = epsilon
        self._choices: dict[str, int] = {}

    @abstractmethod
    def _update(self, context: C, arm: int, reward: float, demand: float) -> None: ...

    @abstractmethod
    def _preferred(self, context: C) -> int: ...

    def _share(self) -> float:
        """Of decisions that explore."""
        return self._epsilon

    def observe(
        self, host: str, pattern: Pattern, arm: int, reward: float, *, demand: float = 0.0, at_s: float = 0.0
    ) -> None:
        context = self._context(pattern, arm, reward)
        self._update(context, arm, reward, demand)
        self._choices[host] = self._preferred(context)

    def choose(self, at_s: float = 0.0) -> Choice:
        choices = self._choices
        if not choices:
            if self._arm in self.without:
                self._arm = next(arm for arm in range(self.arms) if arm not in self.without)
            return Choice(self._arm, False)
        if explored := self._random.random() <= self._share():
            self._arm = int(self._random.random() * self.arms)
        elif len(choices) == 1:
            (self._arm,) = choices.values()
        else:
            votes = list(choices.values())
            self._arm = max(dict.fromkeys(votes), key=votes.count)
        if self._arm in self.without:
            allowed = [arm for arm in range(self.arms) if arm not in self.without]
            votes = [arm for arm in choices.values() if arm in allowed]
            self._arm = max(votes or allowed, key=votes.count)
        choices.clear()
        return Choice(self._arm, explored)

    def _restored(self) -> None:
        self._choices.clear()


class EpsilonGreedy(OfValues, Greedy[Values]):
    """Algorithm 1 as it is printed: sample averages from 0 (equation 1), each host's choice made when its metrics
    come, one in 1/ε decisions random over all values, else the majority's.

    What the paper leaves open: of equal estimates the first value is chosen; of choices with equally many hosts that
    of the host that came first; a host that comes twice before a decision has its newer choice counted.
    `epsilon`: 0.15, as in figure 5; table IV's highest precision, 0.88, is that of this one too.
    """

    name = "epsilon-greedy"

    def _update(self, context: Values, arm: int, reward: float, demand: float) -> None:
        context.values[arm].add(reward)

    def _preferred(self, context: Values) -> int:
        return highest([value.mean for value in context.values])


class Decaying(EpsilonGreedy):
    """ε falls with what has been seen of the patterns that the decision is for (section V-B: "start with a high
    value for ε and decrease it"): `epsilon` / (1 + observations / `half`), by the pattern that was seen least.
    """

    name = "decaying-epsilon"

    def __init__(self, arms: int, seed: int = 0, epsilon: float = 0.5, half: float = 20.0) -> None:
        super().__init__(arms, seed, epsilon)
        if not half > 0:
            raise BadInput("half", "a number above 0", half)
        self._half = half
        self._least = -1.0

    def _update(self, context: Values, arm: int, reward: float, demand: float) -> None:
        super()._update(context, arm, reward, demand)
        seen = sum([value.seen for value in context.values])
        self._least = seen if self._least < 0 else min(seen, self._least)

    def _share(self) -> float:
        least, self._least = self._least, -1.0
        return self._epsilon / (1.0 + max(0.0, least) / self._half)


class Forgetting(EpsilonGreedy):
    """Estimates follow a system that changes: an observation counts `memory` observations of its pattern later
    1/e of what it counted (exponential recency weights; 1/N(a) of equation 1 falls no further than 1/`memory`).
    """

    name = "forgetting"

    def __init__(self, arms: int, seed: int = 0, epsilon: float = 0.15, memory: float = 30.0) -> None:
        super().__init__(arms, seed, epsilon)
        if not memory > 1:
            raise BadInput("memory", "a number above 1", memory)
        self._kept = 1.0 - 1.0 / memory

    def _update(self, context: Values, arm: int, reward: float, demand: float) -> None:
        for value in context.values:
            value.fade(self._kept)
        context.values[arm].add(reward)


class ByDemand(OfLevels, Greedy[Known]):
    """Algorithm 1 with rewards at equal demand (`levels`)."""

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
