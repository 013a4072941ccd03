"""All of the online evaluation: its cases, on all cores, and what they say beside one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import NamedTuple

from tarazu.errors import TarazuError
from tarazu.parts.council.study.control import MANNERS, PAPER, Manner
from tarazu.parts.council.study.online import BEFORE_S, Course, Ran, Replaced, Runs, To
from tarazu.parts.council.study.requests.situation import WINDOWS
from tarazu.sim.study import runner
from tarazu.sim.study.case import Case

DIRECTIONS: tuple[To, ...] = ("faster", "slower")
F_RUNS, MADBENCH_RUNS = 120, 12
ALONE_RUNS = 5
"""Of an application under one window, as in figure 9."""
NEARLY = 0.97
"""Of the best window's rate: as good as the best."""
LOOK_S = 20
"""A window counts as found when most of so many seconds have it."""


class Size(NamedTuple):
    """How much is run."""

    runs: tuple[tuple[str, Manner, int], ...]
    """(application, how, how often)."""
    alone_runs: int
    seeds: tuple[int, ...]
    """Of disks that are replaced."""


WHOLE = Size(
    tuple(
        (name, manner, runs)
        for name, runs in (("F", F_RUNS), ("MADbench2", MADBENCH_RUNS))
        for manner in MANNERS
    ),
    ALONE_RUNS,
    (1, 2, 3),
)
SHORT = Size((("MADbench2", PAPER, 1),), 1, ())


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


def evaluate(size: Size = WHOLE, tell: Callable[[str], object] = lambda text: None) -> OnlineEvaluation:
    """Raises TarazuError for a case without a result."""
    cases: list[Case] = [*_runs(size), *_replaced(size)]
    ran: dict[Case, Ran | Course] = {}
    for case, rows in runner.processes(cases, runner.cores(), tell):
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
    alone = {one.case.window: one.rate() for one in here if one.case.manner is None}
    best = max(alone.values())
    wanted = {window for window, rate in alone.items() if rate >= NEARLY * best}
    seconds: dict[str, tuple[float, ...]] = {}
    shares: dict[str, tuple[float, ...]] = {}
    for one in here:
        if one.case.manner:
            name = one.case.manner.name
            seconds[name] = (*seconds.get(name, ()), found_again_s(one.windows, wanted))
            shares[name] = (*shares.get(name, ()), one.rate(BEFORE_S) / best)
    return Again(to, alone, seconds, shares)


def found_again_s(windows: Sequence[int], wanted: set[int], begin_s: int = BEFORE_S) -> float:
    """Seconds from `begin_s` until a stretch of LOOK_S begins most of which has one of the windows; infinite where
    none does."""
    for begin in range(begin_s, len(windows) - LOOK_S + 1):
        hits = sum(window in wanted for window in windows[begin : begin + LOOK_S])
        if windows[begin] in wanted and 2 * hits > LOOK_S:
            return float(begin - begin_s)
    return float("inf")
