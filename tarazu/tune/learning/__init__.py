"""Learners by name.

value     what is known of one value: mean, interval
memory    a context for each pattern, bounded, to disk and back
epsilon   the paper's algorithm 1; with an epsilon that falls, and with values that forget
bounds    upper confidence bounds, Thompson sampling
levels    rewards of different demand made comparable
lending   what similar patterns say
variants  algorithm 1 with either
ours      `tarazu`: all of it together
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tarazu.errors import BadInput
from tarazu.tune.learner import Learner
from tarazu.tune.learning.bounds import Thompson, Ucb
from tarazu.tune.learning.epsilon import Decaying, EpsilonGreedy, Forgetting
from tarazu.tune.learning.ours import Tarazu
from tarazu.tune.learning.variants import ByDemand, Neighbours

LEARNERS: dict[str, Callable[..., Learner]] = {
    learner.name: learner
    for learner in (EpsilonGreedy, Decaying, Ucb, Thompson, Forgetting, ByDemand, Neighbours, Tarazu)
}

NAMES = tuple(LEARNERS)


def named(name: str, arms: int, seed: int = 0, **options: Any) -> Learner:
    """The learner of that name for a lever with that many values; options as its class has them. Raises BadInput."""
    if name not in LEARNERS:
        raise BadInput("learner", f"one of {', '.join(NAMES)}", name)
    return LEARNERS[name](arms, seed, **options)
