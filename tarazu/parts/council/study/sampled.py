"""The offline evaluation as a whole (section V-B): all scenarios on all cores, and of them tables II and IV, figures 4
and 5. One case is a learner in one situation, with each window that it may start with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tarazu.parts.council.pattern import Pattern
from tarazu.parts.council.study import learning, measured, offline
from tarazu.parts.council.study.measured import WINDOWS, Floats, Measured
from tarazu.parts.council.study.requests import dataset
from tarazu.parts.council.study.requests.situation import SITUATIONS, TABLE_III
from tarazu.sim.study import runner
from tarazu.sim.study.case import Case

PAPER, OURS = "epsilon-greedy", "tarazu"
EPSILON = 0.15
"""Of figure 5, and of the learner as it is."""
EPSILONS = (0.05, 0.1, EPSILON, 0.3)
"""Of figure 4; the paper's own are told apart in its picture alone."""
SEED = 1
REPETITIONS = 100
"""Of each scenario, the paper's and ours."""
MIXED = 1800
"""Observations of figure 5: 300 of each pattern, as alone."""
SIX = tuple(SITUATIONS.index(situation) for situation in TABLE_III.values())
GENERATED = "generated"
"""Instead of a file: situations that no simulation has given, of the same shape; to see that it works."""

Said = Callable[[str], object]


class SampledCase(Case, frozen=True):
    """One learner in one situation."""

    path: str
    learner: str
    epsilon: float | None
    """None: as the learner has it."""
    situation: int
    repetitions: int

    @property
    def label(self) -> str:
        return f"{self.learner}, situation {self.situation}"

    @property
    def weight(self) -> float:
        return self.repetitions * (5.0 if self.learner == OURS else 1.0)


class Curves(NamedTuple):
    """One learner; situations in the order that was asked for."""

    performance: Floats
    """(situations, 7 starts, bins) of the best window's."""
    precision: Floats
    """(situations, 7, bins)"""
    regret: Floats
    """(situations, 7), observations of the best window."""


class Improved(NamedTuple):
    """Precision, first to last bin, in per cent (table II)."""

    least: float
    median: float
    mean: float
    most: float


class Evaluated(NamedTuple):
    """What the docs show."""

    repetitions: int
    all: Mapping[str, Curves]
    """By learner; all 144 situations."""
    alone: Mapping[str, Floats]
    """Figure 4: learner, or ε → (6, bins) precision."""
    mixed: Mapping[str, Floats]
    """Figure 5: learner → (6, bins) precision; a bin is ten observations of that pattern."""


@lru_cache(2)
def data(path: str) -> tuple[Measured, ...]:
    """The 144 situations of a data set that `tarazu.parts.council.study.requests.dataset` wrote. Raises BadInput."""
    if path == GENERATED:
        return measured.generated(SEED)
    return measured.simulated(dataset.read(Path(path)))


def rows(case: SampledCase, progress: object = None) -> list[offline.Curves]:
    """By the window with which it starts."""
    one = data(case.path)[case.situation]
    more: dict[str, Any] = {} if case.epsilon is None else {"epsilon": case.epsilon}
    return [
        offline.scenario(
            one,
            case.learner,
            start,
            case.repetitions,
            SEED * 10_000 + case.situation * WINDOWS + start,
            **more,
        )
        for start in range(WINDOWS)
    ]


def curves(
    path: str,
    learner: str,
    repetitions: int,
    *,
    of: Iterable[int] | None = None,
    epsilon: float | None = None,
    jobs: int = 0,
    tell: Said = lambda text: None,
) -> Curves:
    """`of`: numbers of situations, all by default. `jobs`: processes; 0: one on each core. The result does not depend
    on it. Raises BadInput for a data set that cannot be read.
    """
    numbers = list(range(len(data(path))) if of is None else of)
    cases = [SampledCase(path, learner, epsilon, number, repetitions) for number in numbers]
    by_situation: dict[int, list[offline.Curves]] = {}
    jobs = jobs or runner.cores()
    for case, outcome in runner.serial(cases) if jobs == 1 else runner.processes(cases, jobs, tell):
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(case, SampledCase)
        by_situation[case.situation] = outcome
        what = learner if epsilon is None else f"{learner}, ε = {epsilon:g}"
        tell(f"{what}: {len(by_situation)} of {len(cases)} situations, {repetitions} repetitions")
    every = [by_situation[number] for number in numbers]
    return Curves(
        np.array([[c.performance for c in starts] for starts in every]),
        np.array([[c.precision for c in starts] for starts in every]),
        np.array([[c.regret for c in starts] for starts in every]),
    )


def improved(precision: Floats) -> Improved:
    """precision: (situations, 7, bins). The windows that a situation starts with are taken together: who starts with
    the best one has nothing to improve, who does not may have had none of it in the first bin.
    """
    first, last = precision[..., 0].mean(1), precision[..., -1].mean(1)
    gain = 100 * (last / np.maximum(first, 1e-9) - 1)
    return Improved(*(float(of(gain)) for of in (np.min, np.median, np.mean, np.max)))


def table_2(precision: Floats) -> dict[str, Improved]:
    """precision: (144, 7, bins)."""
    reads = np.array([situation.operation == "read" for situation in SITUATIONS])
    return {
        "READ": improved(precision[reads]),
        "WRITE": improved(precision[~reads]),
        "Total": improved(precision),
    }


def mixed(path: str, learner: str, repetitions: int, length: int = MIXED) -> Floats:
    """(6, bins) precision, the six patterns of table III in random turns (figure 5); a bin is ten observations of that
    pattern. A and F are one pattern on other numbers of nodes; another number of files keeps them apart.
    """
    six = [data(path)[number] for number in SIX]
    six = [
        one._replace(pattern=Pattern(*one.pattern[:2], 4**at, one.pattern[3])) for at, one in enumerate(six)
    ]
    best = [int(np.argmax(one.shares)) for one in six]
    # Each comes some length / 6 times; a tenth fewer come nearly always.
    bins = max(1, int(0.9 * length / len(six) / offline.BIN))
    right = np.full((repetitions, len(six), bins * offline.BIN), np.nan)
    for repetition in range(repetitions):
        own = learning.named(learner, WINDOWS, repetition)
        which, windows = offline.together(six, own, length, repetition, repetition % WINDOWS)
        for at in range(len(six)):
            of = (windows[which == at] == best[at])[: bins * offline.BIN]
            right[repetition, at, : len(of)] = of
    return offline.binned(np.nanmean(right, 0))


def evaluate(
    path: str,
    repetitions: int = REPETITIONS,
    others: int = 0,
    *,
    jobs: int = 0,
    tell: Said = lambda text: None,
) -> Evaluated:
    """`others`: repetitions of the learners besides the paper's and ours; 0: none of them."""
    shared: dict[str, Any] = {"jobs": jobs, "tell": tell}
    all_ = {name: curves(path, name, repetitions, **shared) for name in (PAPER, OURS)}
    if others:
        all_ |= {
            name: curves(path, name, others, **shared) for name in learning.NAMES if name not in (PAPER, OURS)
        }
    alone = {
        f"ε = {epsilon:g}": (
            all_[PAPER].precision[list(SIX)]
            if epsilon == EPSILON
            else curves(path, PAPER, repetitions, of=SIX, epsilon=epsilon, **shared).precision
        ).mean(1)
        for epsilon in EPSILONS
    }
    alone[OURS] = all_[OURS].precision[list(SIX)].mean(1)
    together = {}
    for name in (PAPER, OURS):
        tell(f"{name}: six patterns mixed")
        together[name] = mixed(path, name, repetitions)
    return Evaluated(repetitions, all_, alone, together)
