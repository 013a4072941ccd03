"""Learners: tarazu's own, and those it is compared with.

epsilon  the paper's algorithm 1; with an epsilon that falls, with values that forget, with rewards at equal demand
bounds   upper confidence bounds, Thompson sampling
"""

from __future__ import annotations

from typing import Any

from tarazu.errors import BadInput
from tarazu.parts.council.learner import Learner
from tarazu.parts.council.learning.ours import Tarazu
from tarazu.parts.council.study.learning.bounds import Thompson, Ucb
from tarazu.parts.council.study.learning.epsilon import ByDemand, Decaying, EpsilonGreedy, Forgetting

LEARNERS: dict[str, type[Learner]] = {
    learner.name: learner
    for learner in (EpsilonGreedy, Decaying, Ucb, Thompson, Forgetting, ByDemand, Tarazu)
}

NAMES = tuple(LEARNERS)


def named(name: str, arms: int, seed: int = 0, **options: Any) -> Learner:
    """The learner of that name for a lever with that many values; options as its class has them. Raises BadInput."""
    if name not in LEARNERS:
        raise BadInput("learner", f"one of {', '.join(NAMES)}", name)
    return LEARNERS[name](arms, seed, **options)
