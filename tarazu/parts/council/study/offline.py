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

from tarazu.parts.council.learner import Learner
from tarazu.parts.council.study import learning
from tarazu.parts.council.study.measured import Floats, Measured, lists

BIN = 10
"""Observations that are shown as one (section V-B)."""
LENGTH = 300
"""Observations of a scenario: hundreds, as the paper says; drawn again when there are fewer."""

Make = Callable[[int], Learner]
"""A learner, by seed."""


class Curves(NamedTuple):
    """One learner in one scenario, means of the repetitions."""

    performance: Floats
    """(LENGTH / BIN,) of the best window's."""
    precision: Floats
    """(LENGTH / BIN,) share of observations with the best window."""
    regret: float
    """Observations of the best window that the whole scenario lost."""


def used(
    measured: Measured, make: Make, start: int, length: int, repetitions: int, seed: int
) -> NDArray[np.int8]:
    """(repetitions, length): the window that each observation was made with. The first is `start`."""
    windows = np.empty((repetitions, length), np.int8)
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
        windows[repetition] = arms
    return windows


def together(
    several: Sequence[Measured], learner: Learner, length: int, seed: int, start: int = 0
) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """Several situations, one drawn for each observation (figure 5): (length,) which, and with which window. Each is
    observed with the window that was last chosen for it, as where its nodes are a group of their own.
    """
    random = Random(seed).random
    samples = [lists(one) for one in several]
    arms = [start] * len(several)
    which = np.empty(length, np.int16)
    windows = np.empty(length, np.int8)
    for turn in range(length):
        at = int(random() * len(several))
        arm = arms[at]
        which[turn], windows[turn] = at, arm
        rewards, demands = samples[at][arm]
        draw = int(random() * len(rewards))
        learner.observe(f"node {at}", several[at].pattern, arm, rewards[draw], demand=demands[draw])
        arms[at] = learner.choose().arm
    return which, windows


def through(
    phases: Sequence[tuple[Measured, int]], learner: Learner, seed: int, start: int = 0
) -> list[Floats]:
    """One learner through phases (situation, observations) of one pattern, that of the first: performance of each
    observation, by phase. For systems that change, and demands.
    """
    random, arm, pattern = Random(seed).random, start, phases[0][0].pattern
    by_phase = []
    for measured, length in phases:
        samples, shares, performance = lists(measured), measured.shares, []
        for _ in range(length):
            performance.append(shares[arm])
            rewards, demands = samples[arm]
            at = int(random() * len(rewards))
            learner.observe("node", pattern, arm, rewards[at], demand=demands[at])
            arm = learner.choose().arm
        by_phase.append(np.array(performance))
    return by_phase


def mirrored(measured: Measured, level: float) -> Measured:
    """Another system: what the longest window gave the shortest one gives, times `level`."""
    samples = tuple(sample._replace(rewards=sample.rewards * level) for sample in reversed(measured.samples))
    return measured._replace(samples=samples)


def scenario(
    measured: Measured,
    name: str,
    start: int,
    repetitions: int,
    seed: int,
    length: int = LENGTH,
    **options: float,
) -> Curves:
    """`options`: the learner's."""
    windows = used(
        measured,
        lambda own: learning.named(name, len(measured.samples), own, **options),
        start,
        length,
        repetitions,
        seed,
    )
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
