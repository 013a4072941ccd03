"""Algorithm 1 of Bez et al. (Adaptive Request Scheduling, section IV), to compare ours with, and one that forgets."""

from __future__ import annotations

import math

from tarazu.parts.council.learning.learner import Choice, Learner
from tarazu.parts.council.learning.ours import Tarazu
from tarazu.parts.council.learning.value import UNSEEN, Belief, Value, student
from tarazu.parts.council.pattern import Pattern


def belief(value: Value) -> Belief:
    """Student's interval; of one observation nothing is known about how they vary."""
    if value.seen <= 0:
        return UNSEEN
    if value.seen < 2:
        return Belief(value.mean, 0.0, math.inf, value.seen)
    within = student(value.seen - 1) * math.sqrt(value.squares / (value.seen - 1) / value.seen)
    return Belief(value.mean, max(0.0, value.mean - within), value.mean + within, value.seen)


class EpsilonGreedy(Learner):
    """Algorithm 1 as it is printed: sample averages from 0 (equation 1), each host's choice made when its metrics
    come, one in 1/ε decisions random over all values, else the majority's.

    What the paper leaves open: of equal estimates the first value is chosen; of choices with equally many hosts that
    of the host that came first; a host that comes twice before a decision has its newer choice counted.
    `epsilon`: 0.15, as in figure 5; table IV's highest precision, 0.88, is that of this one too.
    """

    name = "epsilon-greedy"

    def __init__(self, arms: int, seed: int = 0, epsilon: float = 0.15) -> None:
        super().__init__(arms, seed)
        self._epsilon = epsilon
        self._values: dict[Pattern, list[Value]] = {}
        self._choices: dict[str, int] = {}

    def observe(self, host: str, pattern: Pattern, arm: int, reward: float, *, demand: float = 0.0) -> None:
        if pattern not in self._values:
            self._values[pattern] = [Value() for _ in range(self.arms)]
        values = self._values[pattern]
        self._update(values, arm, reward)
        means = [value.mean for value in values]
        self._choices[host] = means.index(max(means))

    def _update(self, values: list[Value], arm: int, reward: float) -> None:
        values[arm].add(reward)

    def choose(self) -> Choice:
        if not self._choices:
            return Choice(self._arm, False)
        if explored := self._random.random() <= self._epsilon:
            self._arm = int(self._random.random() * self.arms)
        else:
            votes = list(self._choices.values())
            self._arm = max(dict.fromkeys(votes), key=votes.count)
        self._choices.clear()
        return Choice(self._arm, explored)

    def beliefs(self, pattern: Pattern) -> tuple[Belief, ...]:
        return tuple(map(belief, self._values.get(pattern, [Value()] * self.arms)))

    def patterns(self) -> tuple[Pattern, ...]:
        return tuple(self._values)


class Forgetting(EpsilonGreedy):
    """Estimates follow a system that changes: an observation counts `memory` observations of its pattern later 1/e of
    what it counted (1/N(a) of equation 1 falls no further than 1/`memory`).
    """

    name = "forgetting"

    def __init__(self, arms: int, seed: int = 0, memory: float = 30.0) -> None:
        super().__init__(arms, seed)
        self._kept = 1.0 - 1.0 / memory

    def _update(self, values: list[Value], arm: int, reward: float) -> None:
        for value in values:
            value.fade(self._kept)
        values[arm].add(reward)


PAPER, OURS = EpsilonGreedy.name, Tarazu.name
LEARNERS: dict[str, type[Learner]] = {
    learner.name: learner for learner in (EpsilonGreedy, Tarazu, Forgetting)
}
