"""Learners by name: tarazu's own (`tarazu.tune.learning.ours`), and those that it is compared with.

epsilon   the paper's algorithm 1; with an epsilon that falls, and with values that forget
bounds    upper confidence bounds, Thompson sampling
variants  algorithm 1 with rewards made comparable, or with what similar patterns say
lending   what similar patterns say; ours with it
"""

from __future__ import annotations

from typing import Any

from tarazu.errors import BadInput
from tarazu.sim.tuning.learning.bounds import Thompson, Ucb
from tarazu.sim.tuning.learning.epsilon import Decaying, EpsilonGreedy, Forgetting
from tarazu.sim.tuning.learning.variants import ByDemand, Neighbours
from tarazu.tune.learner import Learner
from tarazu.tune.learning.ours import Tarazu

LEARNERS: dict[str, type[Learner]] = {
    learner.name: learner
    for learner in (EpsilonGreedy, Decaying, Ucb, Thompson, Forgetting, ByDemand, Neighbours, Tarazu)
}

NAMES = tuple(LEARNERS)


def named(name: str, arms: int, seed: int = 0, **options: Any) -> Learner:
    """The learner of that name for a lever with that many values; options as its class has them. Raises BadInput."""
    if name not in LEARNERS:
        raise BadInput("learner", f"one of {', '.join(NAMES)}", name)
    return LEARNERS[name](arms, seed, **options)
