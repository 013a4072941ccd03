"""Learners on sampled observations (section V-B): an observation, a decision, the next observation.

A scenario is a situation and the window with which it starts (144 x 7 = 1,008). Each decision rests on one observation
that was drawn from those of its situation and window, the pattern is known, and each scenario is repeated with other
draws. What is counted are the windows that were used: how often the best one (precision), what they give on average
beside the best one (performance), and what was lost by not using it (regret, in observations of the best one).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarazu.parts.council.learning.learner import Learner
from tarazu.parts.council.pattern import Pattern

BIN = 10
"""Observations that are shown as one (section V-B)."""
LENGTH = 300
"""Observations of a scenario: hundreds, as the paper says; drawn again when there are fewer."""

Floats = NDArray[np.float64]
Make = Callable[[int], Learner]
"""A learner, by seed."""


class Sample(NamedTuple):
    """All observations of one situation with one window."""

    rewards: Sequence[float]
    """Bytes a second of one node in one interval; above 0."""
    demands: Sequence[float]
    """As in Observation."""

    def draw(self, random: Callable[[], float]) -> tuple[float, float]:
        at = int(random() * len(self.rewards))
        return self.rewards[at], self.demands[at]


class Measured(NamedTuple):
    """One situation."""

    pattern: Pattern
    samples: tuple[Sample, ...]
    """By window."""

    @property
    def shares(self) -> Floats:
        """(windows,): performance of each, of the best one's."""
        means = np.array([np.mean(sample.rewards) for sample in self.samples])
        return np.asarray(means / means.max())

    @property
    def lead(self) -> float:
        """By what share the best window is ahead of the next."""
        second, first = sorted(self.shares)[-2:]
        return float(first / second - 1)

    def mirrored(self, level: float) -> Measured:
        """Another system: what the longest window gave the shortest one gives, times `level`."""
        return self._replace(
            samples=tuple(
                sample._replace(rewards=[level * reward for reward in sample.rewards])
                for sample in reversed(self.samples)
            )
        )


class Curves(NamedTuple):
    """One learner in one scenario, means of the repetitions."""

    performance: Floats
    """(LENGTH / BIN,) of the best window's."""
    precision: Floats
    """(LENGTH / BIN,) share of observations with the best window."""
    regret: float
    """Observations of the best window that the whole scenario lost."""


def through(
    phases: Sequence[tuple[Measured, int]], learner: Learner, seed: int, start: int = 0
) -> list[list[int]]:
    """One learner through phases (situation, observations) of one pattern, that of the first: the window of each
    observation, by phase.
    """
    random, arm, pattern = Random(seed).random, start, phases[0][0].pattern
    observe, choose = learner.observe, learner.choose
    by_phase = []
    for measured, length in phases:
        samples, arms = measured.samples, []
        for _ in range(length):
            arms.append(arm)
            reward, demand = samples[arm].draw(random)
            observe("node", pattern, arm, reward, demand=demand)
            arm = choose().arm
        by_phase.append(arms)
    return by_phase


def together(
    several: Sequence[Measured], learner: Learner, length: int, seed: int, start: int = 0
) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """Several situations, one drawn for each observation (figure 5): (length,) which, and with which window. Each is
    observed with the window that was last chosen for it, as where its nodes are a group of their own.
    """
    random = Random(seed).random
    arms = [start] * len(several)
    which = np.empty(length, np.int16)
    windows = np.empty(length, np.int8)
    for turn in range(length):
        at = int(random() * len(several))
        which[turn], windows[turn] = at, arms[at]
        reward, demand = several[at].samples[arms[at]].draw(random)
        learner.observe(f"node {at}", several[at].pattern, arms[at], reward, demand=demand)
        arms[at] = learner.choose().arm
    return which, windows


def scenario(
    measured: Measured, make: Make, start: int, repetitions: int, seed: int, length: int = LENGTH
) -> Curves:
    """Each repetition with a learner of its own."""
    own = [seed * 1_000_003 + repetition for repetition in range(repetitions)]
    windows = np.array([through([(measured, length)], make(each), each, start)[0] for each in own])
    shares = measured.shares
    performance = shares[windows]
    return Curves(
        binned(performance).mean(0),
        binned((windows == int(np.argmax(shares))).astype(float)).mean(0),
        float((1.0 - performance).sum(1).mean()),
    )


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
