"""Learners on sampled observations (section V-B): an observation, a decision, the next observation.

A scenario is a situation and the window with which it starts (144 x 7 = 1,008). Each decision rests on one observation
that was drawn from those of its situation and window, the pattern is known, and each scenario is repeated with other
draws. What is counted are the windows that were used: how often the best one (precision), what they give on average
beside the best one (performance), and what was lost by not using it (regret, in observations of the best one).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
from numpy.typing import NDArray

from tarazu.sim.tuning.measured import Floats, Measured, lists
from tarazu.tune.learner import Learner

BIN = 10
"""Observations that are shown as one (section V-B)."""
REPETITIONS = 100
LENGTH = 500
"""Observations of a scenario: hundreds, as the paper says; drawn again when there are fewer."""

Make = Callable[[int], Learner]
"""A learner, by seed."""


def used(
    measured: Measured, make: Make, start: int, length: int, repetitions: int, seed: int
) -> NDArray[np.int8]:
    """(repetitions, length): the window that each observation was made with. The first is `start`."""
    found = np.empty((repetitions, length), np.int8)
    samples, pattern = lists(measured), measured.pattern
    for repetition in range(repetitions):
        own = seed * 1_000_003 + repetition
        random, learner, arm = Random(own).random, make(own), start
        observe, choose = learner.observe, learner.choose
        arms = []
        for _ in range(length):
            arms.append(arm)
            rewards, demands = samples[arm]
            at = int(random() * len(rewards))
            observe("node", pattern, arm, rewards[at], demand=demands[at])
            arm = choose().arm
        found[repetition] = arms
    return found


def binned(values: Floats) -> Floats:
    """(…, length) → (…, length // BIN): means."""
    length = values.shape[-1] // BIN * BIN
    return np.asarray(values[..., :length].reshape(*values.shape[:-1], -1, BIN).mean(-1))


def reached(performance: Floats, share: float = 0.95) -> float:
    """Observations until the performance is `share` and stays there on average: the first bin that has it and after
    which the mean of the rest has it too. performance: (bins,). math.inf: not within them.
    """
    rest = np.cumsum(performance[::-1])[::-1] / np.arange(len(performance), 0, -1)
    good = np.flatnonzero((performance >= share) & (rest >= share))
    return float((good[0] + 1) * BIN) if len(good) else float("inf")
