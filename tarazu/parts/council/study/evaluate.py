"""All of the online evaluation: its cases, on all cores, and what they say beside one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import NamedTuple, TypeVar

from tarazu.errors import TarazuError
from tarazu.parts.council.study.change import BEFORE_S, Course, Replaced, To, found_again_s, good, rates_alone
from tarazu.parts.council.study.control import OURS, PAPER, Manner
from tarazu.parts.council.study.online import F_RUNS, MADBENCH_RUNS, Ran, Runs
from tarazu.parts.council.study.requests.situation import WINDOWS
from tarazu.sim.study import runner
from tarazu.sim.study.case import Case

DETECTED = OURS._replace(name="ours, patterns detected", classifier=True)
MANNERS = (PAPER, OURS, DETECTED)
DIRECTIONS: tuple[To, ...] = ("faster", "slower")
ALONE_RUNS = 5
"""Of an application under one window, as in figure 9."""


class Size(NamedTuple):
    """How much is run."""

    runs: tuple[tuple[str, Manner, int], ...]
    """(application, how, how often)."""
    alone_runs: int
    seeds: tuple[int, ...]
    """Of disks that are replaced."""


WHOLE = Size(
    (
        ("F", PAPER, F_RUNS),
        ("F", OURS, F_RUNS),
        ("F", DETECTED, F_RUNS // 3),
        *(("MADbench2", manner, MADBENCH_RUNS) for manner in MANNERS),
    ),
    ALONE_RUNS,
    (1, 2, 3),
)
SHORT = Size((("MADbench2", PAPER, 1), ("MADbench2", DETECTED, 1)), 1, ())


class Compared(NamedTuple):
    """One phase of an application, again and again; times in the daemons' seconds."""

    application: str
    phase: str
    alone_s: tuple[float, ...]
    """Mean under each window alone."""
    times_s: dict[str, tuple[float, ...]]
    """By manner, of each run."""

    @property
    def best(self) -> int:
        """Index of the best window."""
        return min(range(len(self.alone_s)), key=lambda window: self.alone_s[window])

    @property
    def worst(self) -> int:
        return max(range(len(self.alone_s)), key=lambda window: self.alone_s[window])

    def learned_s(self, manner: str) -> float:
        """Mean of the second half of the runs."""
        times = self.times_s[manner]
        return fmean(times[len(times) // 2 :])


class Again(NamedTuple):
    """Disks were replaced."""

    to: To
    alone: dict[int, float]
    """Window → bytes/s after it."""
    found_s: dict[str, tuple[float, ...]]
    """By manner, of each seed: seconds until a good window was found again; infinite where it was not."""
    shares: dict[str, tuple[float, ...]]
    """Bytes that moved after it, over those that the best window alone would have moved."""

    def median_s(self, manner: str) -> float:
        return median(self.found_s[manner])

    def median_share(self, manner: str) -> float:
        return median(self.shares[manner])


class OnlineEvaluation(NamedTuple):
    phases: tuple[Compared, ...]
    again: tuple[Again, ...]
    ran: tuple[Ran, ...]
    courses: tuple[Course, ...]
    """Of those that learn."""


Answer = TypeVar("Answer", Ran, Course)


def evaluate(
    size: Size = WHOLE, jobs: int = 0, tell: Callable[[str], object] = lambda text: None
) -> OnlineEvaluation:
    """jobs: processes, 0 for one on each core, 1 for none but this. Raises TarazuError for a case without a result."""
    jobs = jobs or runner.cores()
    cases: list[Case] = [*_runs(size), *_replaced(size)]
    ran: dict[Case, Ran | Course] = {}
    for case, rows in runner.serial(cases) if jobs == 1 else runner.processes(cases, jobs, tell):
        if isinstance(rows, Exception):
            raise TarazuError(f"{case.label}: {rows}") from rows
        ran[case] = rows[0]
        tell(f"{len(ran)} of {len(cases)}: {case.label}")
    runs = [one for one in (ran[case] for case in cases) if isinstance(one, Ran)]
    courses = [one for one in (ran[case] for case in cases) if isinstance(one, Course)]
    return OnlineEvaluation(
        tuple(phase for name in _applications(size) for phase in _compared(name, runs)),
        tuple(_again(to, courses) for to in DIRECTIONS if courses),
        tuple(one for one in runs if one.case.manner),
        tuple(one for one in courses if one.case.manner),
    )


def _applications(size: Size) -> list[str]:
    return list(dict.fromkeys(name for name, _, _ in size.runs))


def _runs(size: Size) -> list[Runs]:
    alone = [
        Runs(name, size.alone_runs, None, window)
        for name in _applications(size)
        for window in range(len(WINDOWS))
    ]
    return [*(Runs(name, runs, manner) for name, manner, runs in size.runs), *alone]


def _replaced(size: Size) -> list[Replaced]:
    if not size.seeds:
        return []
    learn = [Replaced(to, m, seed=seed) for to in DIRECTIONS for m in MANNERS for seed in size.seeds]
    return [*learn, *(Replaced(to, None, window) for to in DIRECTIONS for window in range(len(WINDOWS)))]


def _compared(application: str, ran: Sequence[Ran]) -> list[Compared]:
    ours = [one for one in ran if one.case.application == application]
    alone = {one.case.window: one for one in ours if one.case.manner is None}
    return [
        Compared(
            application,
            name,
            tuple(fmean(alone[window].times_s[number]) for window in range(len(WINDOWS))),
            {one.case.manner.name: one.times_s[number] for one in ours if one.case.manner},
        )
        for number, name in enumerate(ours[0].phases)
    ]


def _again(to: To, courses: Sequence[Course]) -> Again:
    here = [one for one in courses if one.case.to == to]
    alone = rates_alone([one for one in here if one.case.manner is None])
    wanted, best = good(alone), max(alone.values())
    seconds: dict[str, tuple[float, ...]] = {}
    shares: dict[str, tuple[float, ...]] = {}
    for one in here:
        if one.case.manner:
            name = one.case.manner.name
            seconds[name] = (*seconds.get(name, ()), found_again_s(one.windows, wanted))
            shares[name] = (*shares.get(name, ()), one.rate(BEFORE_S) / best)
    return Again(to, alone, seconds, shares)
