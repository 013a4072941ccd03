"""tarazu-council with a learner that tries another value each time: so that each round's decision is a new one."""

from __future__ import annotations

import sys

from tarazu.daemons.council.service import main
from tarazu.tune import learning
from tarazu.tune.learning.epsilon import EpsilonGreedy

learning.LEARNERS["explores"] = lambda arms, seed=0: EpsilonGreedy(arms, seed, epsilon=1.0)

if __name__ == "__main__":
    sys.exit(main())
