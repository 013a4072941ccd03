"""All of the online evaluation: its cases, on all cores, and what they say beside one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from tarazu.errors import TarazuError
from tarazu.parts.council.study.online import MANNERS, Manner, Ran, Runs
from tarazu.parts.council.study.requests.situation import WINDOWS
from tarazu.sim.study import runner
from tarazu.sim.study.case import Case

ALONE_RUNS = 5
"""Of an application under one window, as in figure 9."""


Wanted = Sequence[tuple[str, Manner, int]]
"""(application, how, how often)."""
WHOLE: Wanted = [(name, manner, runs) for name, runs in (("F", 120), ("MADbench2", 12)) for manner in MANNERS]


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


class OnlineEvaluation(NamedTuple):
    phases: tuple[Compared, ...]
    ran: tuple[Ran, ...]
    """Of those that learn."""


def evaluate(
    tell: Callable[[str], object], wanted: Wanted = WHOLE, alone_runs: int = ALONE_RUNS
) -> OnlineEvaluation:
    """Raises TarazuError for a case without a result."""
    names = list(dict.fromkeys(name for name, _, _ in wanted))
    cases = [Runs(name, runs, manner) for name, manner, runs in wanted]
    cases += [Runs(name, alone_runs, None, window) for name in names for window in range(len(WINDOWS))]
    ran: dict[Case, Ran] = {}
    for case, rows in runner.processes(cases, runner.cores(), tell):
        if isinstance(rows, Exception):
            raise TarazuError(f"{case.label}: {rows}") from rows
        ran[case] = rows[0]
        tell(f"{len(ran)} of {len(cases)}: {case.label}")
    runs = [ran[case] for case in cases]
    return OnlineEvaluation(
        tuple(phase for name in names for phase in _compared(name, runs)),
        tuple(one for one in runs if one.case.manner),
    )


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
