"""Online, in simulated time: the real council beside each window alone."""

from __future__ import annotations

import sys
import time

from tarazu.parts.council.study.evaluate import Compared, OnlineEvaluation, evaluate
from tarazu.parts.council.study.online import PAPER
from tarazu.parts.council.study.pictures import trend
from tarazu.parts.council.study.requests.situation import WINDOWS
from tarazu.sim.study.runner import cores
from tests.benchmarks.figure import Figure

MOST_S = 900.0
"""On two cores that have other work as well; alone, less than a third of it."""
MOST_OVER = 1.12
"""F's second half of the runs, beside the best window alone."""


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works: a few runs say nothing."""
    began = time.monotonic()
    few = {"wanted": [("MADbench2", PAPER, 1)], "alone_runs": 1} if short else {}
    found = evaluate(lambda text: print(f"  {text}", file=sys.stderr, flush=True), **few)  # type: ignore[arg-type]
    return figures(found, time.monotonic() - began, judged=not short)


def figures(found: OnlineEvaluation, took_s: float, judged: bool) -> list[Figure]:
    return [
        Figure("all of it, on so many cores as there are", took_s, "s", most=MOST_S if judged else None),
        Figure("cores", cores(), ""),
        *(figure for phase in found.phases for figure in _phase(phase, judged)),
    ]


def _phase(phase: Compared, judged: bool) -> list[Figure]:
    what = f"{phase.application}, {phase.phase}"
    best, worst = phase.alone_s[phase.best], phase.alone_s[phase.worst]
    made = [
        Figure(f"{what}: best window alone, {WINDOWS[phase.best]}", best, "s"),
        Figure(f"{what}: worst window alone, {WINDOWS[phase.worst]}", worst, "s"),
    ]
    for name, times in phase.times_s.items():
        first, last = trend(times)
        # MADbench2's windows differ so little that only this much can be said: it lies among them.
        most = MOST_OVER if phase.application == "F" else 1.05 * worst / best
        falls = name == PAPER.name and phase.application == "F"
        made += [
            Figure(f"{what}, {name}: trend, first run", first, "s"),
            Figure(
                f"{what}, {name}: last run / first", last / first, "", most=0.97 if judged and falls else None
            ),
            Figure(
                f"{what}, {name}: second half / best window alone",
                phase.learned_s(name) / best,
                "",
                most=most if judged else None,
            ),
        ]
    return made
