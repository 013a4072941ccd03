"""The offline evaluation when the pattern of an observation is the one that the product detects, not the true one.

An observation's pattern is drawn from those that were detected in its situation with its window (`detected`), its
reward from the data set as before. An interval that shows no pattern teaches nothing, and its window stays. What is
taken for another pattern is learned as that one: the same situation has several bandits then.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarazu.sim.tuning.detected import DetectedRow
from tarazu.sim.tuning.measured import Measured, lists
from tarazu.sim.tuning.offline import BIN, Make, binned, reached
from tarazu.tune.pattern import Pattern

Shares = Sequence[tuple[Pattern | None, float]]
"""What is detected, and in what part of the intervals; None: nothing. 1 together."""


def shares(rows: Iterable[DetectedRow]) -> dict[tuple[int, int], Shares]:
    """(situation, window) → what is detected there."""
    found: dict[tuple[int, int], Shares] = {}
    for row in rows:
        counts: list[tuple[Pattern | None, int]] = [*row.found, (None, row.nothing)]
        total = sum(times for _, times in counts)
        if total:
            found[row.situation, row.window] = [(pattern, n / total) for pattern, n in counts if n]
    return found


def used(
    of: Measured,
    seen: Sequence[Shares],
    make: Make,
    start: int,
    length: int,
    repetitions: int,
    seed: int,
) -> NDArray[np.int8]:
    """(repetitions, length): the window that each observation was made with; seen: by window."""
    found = np.empty((repetitions, length), np.int8)
    samples = lists(of)
    patterns = [[pattern for pattern, _ in window] for window in seen]
    upto = [list(accumulate(share for _, share in window)) for window in seen]
    for repetition in range(repetitions):
        own = seed * 1_000_003 + repetition
        random, learner, arm = Random(own).random, make(own), start
        arms = []
        for _ in range(length):
            arms.append(arm)
            rewards, demands = samples[arm]
            at = int(random() * len(rewards))
            which = min(bisect(upto[arm], random()), len(patterns[arm]) - 1)
            pattern = patterns[arm][which]
            if pattern is not None:
                learner.observe("node", pattern, arm, rewards[at], demand=demands[at])
                arm = learner.choose().arm
        found[repetition] = arms
    return found


class Loss(NamedTuple):
    """One learner over all scenarios."""

    performance: float
    """In the last bin, beside the best window's, 0-1."""
    precision: float
    """How often the best window was used there."""
    observations: float
    """Until the performance, on average over all scenarios, stays at 0.95; math.inf: never."""


def evaluated(
    all_: Sequence[Measured],
    seen: Mapping[int, Sequence[Shares]],
    make: Make,
    length: int,
    repetitions: int,
    seed: int,
) -> Loss:
    """seen: situation → by window; of those that are in it, each begun with each window."""
    performances, precisions = [], []
    for number, windows in seen.items():
        of = all_[number]
        best = int(of.means.argmax())
        for start in range(len(of.samples)):
            arms = used(of, windows, make, start, length, repetitions, seed + number)
            performances.append(binned(of.shares[arms]).mean(axis=0))
            precisions.append((arms[:, -BIN:] == best).mean())
    over = np.mean(performances, axis=0)
    return Loss(float(over[-1]), float(np.mean(precisions)), reached(over))


def together(
    all_: Sequence[Measured], seen: Mapping[int, Sequence[Shares]], make: Make, length: int, seed: int
) -> Loss:
    """All situations with one learner, in turn by chance, each with its own window, as in the paper's figure 5: what is
    taken for another situation's pattern is learned as that one's, and the other way round. length: observations of
    each situation, on average.
    """
    random, learner = Random(seed).random, make(seed)
    numbers = list(seen)
    samples = {number: lists(all_[number]) for number in numbers}
    upto = {n: [list(accumulate(share for _, share in window)) for window in seen[n]] for n in numbers}
    arm = {number: int(random() * len(samples[number])) for number in numbers}
    arms: dict[int, list[int]] = {number: [] for number in numbers}
    for _ in range(length * len(numbers)):
        number = numbers[int(random() * len(numbers))]
        window = arm[number]
        arms[number].append(window)
        rewards, demands = samples[number][window]
        at = int(random() * len(rewards))
        patterns = seen[number][window]
        pattern = patterns[min(bisect(upto[number][window], random()), len(patterns) - 1)][0]
        if pattern is not None:
            learner.observe("node", pattern, window, rewards[at], demand=demands[at])
            arm[number] = learner.choose().arm
    least = min(map(len, arms.values())) // BIN * BIN
    shares = np.array([all_[number].shares[arms[number][:least]] for number in numbers])
    best = [int(all_[number].means.argmax()) for number in numbers]
    over = binned(shares).mean(axis=0)
    last = [arms[number][-BIN:].count(window) / BIN for number, window in zip(numbers, best)]
    return Loss(float(over[-1]), float(np.mean(last)), reached(over))


def perfect(all_: Sequence[Measured], numbers: Iterable[int]) -> dict[int, list[Shares]]:
    """As if each interval showed its true pattern."""
    return {number: [[(all_[number].pattern, 1.0)]] * len(all_[number].samples) for number in numbers}


def by_situation(rows: Iterable[DetectedRow], windows: int) -> dict[int, list[Shares]]:
    """Of situations in which all windows were looked at."""
    of = shares(rows)
    numbers = dict.fromkeys(number for number, _ in of)
    return {
        number: [of[number, window] for window in range(windows)]
        for number in numbers
        if all((number, window) in of for window in range(windows))
    }
