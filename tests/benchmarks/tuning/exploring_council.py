"""tarazu-council with a learner that tries another value each time: so that each round's decision is a new one."""

from __future__ import annotations

import functools
import sys

from tarazu.parts.council import councils, exchange, service
from tarazu.parts.council.council import Council
from tarazu.parts.council.study.learners import EpsilonGreedy


class Explores(EpsilonGreedy):
    name = "explores"

    def __init__(self, arms: int, seed: int = 0) -> None:
        super().__init__(arms, seed, epsilon=1.0)


exchange.DWELL_S = 0.001
councils.Council = functools.partial(Council, learner=Explores)  # type: ignore[misc,assignment]

if __name__ == "__main__":
    sys.exit(service.main())
