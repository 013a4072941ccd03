"""Observations of each window in each situation, from which the offline evaluation samples (section V-A)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarazu.errors import BadInput
from tarazu.parts.council.pattern import Pattern
from tarazu.parts.council.study.requests.dataset import Dataset
from tarazu.parts.council.study.requests.situation import SITUATIONS

Floats = NDArray[np.float64]


class Sample(NamedTuple):
    """All observations of one situation with one window."""

    rewards: Floats
    """(n,), bytes a second of one node in one interval; above 0."""
    demands: Floats
    """(n,), as in Observation."""


class Measured(NamedTuple):
    """One situation."""

    name: str
    pattern: Pattern
    samples: tuple[Sample, ...]
    """By window."""

    @property
    def means(self) -> Floats:
        """(windows,): performance of each, bytes a second."""
        return np.array([sample.rewards.mean() for sample in self.samples])

    @property
    def shares(self) -> Floats:
        """(windows,): of the best one's performance."""
        return np.asarray(self.means / self.means.max())

    @property
    def lead(self) -> float:
        """By what share the best window is ahead of the next."""
        first, second = sorted(self.means, reverse=True)[:2]
        return float(first / second - 1)


def simulated(data: Dataset) -> tuple[Measured, ...]:
    """The 144 situations as the request-level simulator gave them, in the order of SITUATIONS. Raises BadInput where
    one of them, or a window, is not in the data set.
    """
    situations = []
    for number, situation in enumerate(SITUATIONS):
        samples = []
        for window in range(WINDOWS):
            runs = np.flatnonzero((data.situation == number) & (data.scheduler == window))
            if not len(runs):
                raise BadInput(
                    "data set", f"observations of each window, in {situation}", f"none of {window}"
                )
            at = np.concatenate([np.arange(data.first[r], data.first[r + 1]) for r in runs])
            samples.append(Sample(data.reward[at], data.demand[at].astype(float)))
        situations.append(Measured(str(situation), situation.pattern, tuple(samples)))
    return tuple(situations)


WINDOWS = 7
NODES = (1, 2, 4, 8)
PROCESSES = (128, 256, 512)
ACCESS = (("contiguous", 1), ("strided", 1), ("contiguous", 0))
"""(spatiality, files of all processes; 0: one each)."""


def generated(seed: int, many: int = 200) -> tuple[Measured, ...]:
    """144 situations that no simulation has given: for the tests, and to choose the learners' constants on, so that
    they are not chosen on what they are judged by.

    How performance depends on the window is drawn for each of the 12 patterns (rising, falling, a peak, uneven,
    nearly none; some 15 %) and changed a little for each situation; observations vary log-normally by 10 to 50 %, and
    one in 5 to 50 is of a shorter interval.
    """
    random = np.random.default_rng(seed)
    situations = []
    places = np.linspace(0, 1, WINDOWS)
    for operation in ("write", "read"):
        for spatiality, shared in ACCESS:
            for request_bytes in (32 << 10, 256 << 10):
                kind = random.integers(5)
                height = random.lognormal(np.log(0.15), 0.8)
                centre = random.uniform(0, 1)
                uneven = random.normal(0, height / 3, WINDOWS)
                for nodes in NODES:
                    for processes in PROCESSES:
                        own = height * random.uniform(0.3, 1.2)
                        shape = (
                            own * places,
                            -own * places,
                            -own * np.abs(places - centre) * 1.5,
                            uneven,
                            0.01 * places,
                        )[kind] + random.normal(0, 0.005 + 0.1 * own, WINDOWS)
                        level = random.lognormal(np.log(2e8 / nodes), 0.4)
                        vary = random.choice((0.1, 0.2, 0.3, 0.5))
                        shorter = random.choice((0.02, 0.1, 0.2))
                        samples = []
                        for share in shape:
                            rewards = level * np.exp(share) * random.lognormal(0, vary, many)
                            rewards *= np.where(
                                random.random(many) < shorter, random.uniform(0.1, 1.0, many), 1.0
                            )
                            samples.append(Sample(rewards, np.full(many, processes / nodes)))
                        pattern = Pattern(
                            operation,  # type: ignore[arg-type]
                            spatiality,  # type: ignore[arg-type]
                            1 if shared else 4 ** round(np.log(processes / nodes) / np.log(4)),
                            request_bytes,
                        )
                        layout = "shared" if shared else "own"
                        name = f"{nodes} {processes} {layout} {spatiality} {operation} {request_bytes >> 10}K"
                        situations.append(Measured(name, pattern, tuple(samples)))
    return tuple(situations)


def lists(measured: Measured) -> Sequence[tuple[list[float], list[float]]]:
    """For loops that take one observation at a time."""
    return [(sample.rewards.tolist(), sample.demands.tolist()) for sample in measured.samples]
