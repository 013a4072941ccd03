"""Online, in simulated time: the real council beside each window alone; disks that are replaced."""

from __future__ import annotations

import sys
import time

from tarazu.sim.requests.situation import WINDOWS
from tarazu.sim.study.runner import cores
from tarazu.sim.tuning.evaluate import SHORT, WHOLE, Again, Compared, Found, evaluate
from tarazu.sim.tuning.online import trend
from tests.benchmarks.figure import Figure

MOST_CPU_S = 300.0
"""For all of it; on two free cores half of that passes."""


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works: a few runs say nothing."""
    began = time.monotonic()
    found = evaluate(
        SHORT if short else WHOLE,
        jobs=1 if short else 0,
        tell=lambda text: print(f"  {text}", file=sys.stderr, flush=True),
    )
    return figures(found, time.monotonic() - began, judged=not short)


def figures(found: Found, took_s: float, judged: bool) -> list[Figure]:
    return [
        Figure("all of it, on so many cores as there are", took_s, "s"),
        Figure("cores", cores(), ""),
        *(figure for phase in found.phases for figure in _phase(phase, judged)),
        *(figure for one in found.again for figure in _again(one, judged)),
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
        made += [
            Figure(f"{what}, {name}: trend, first run", first, "s"),
            Figure(f"{what}, {name}: trend, last run", last, "s"),
            Figure(f"{what}, {name}: second half / best window alone", phase.learned_s(name) / best, ""),
        ]
    return made


def _again(one: Again, judged: bool) -> list[Figure]:
    made = []
    for name in one.found_s:
        what = f"disks become {one.to}, {name}"
        made += [
            Figure(f"{what}: found again after, median", one.median_s(name), "s"),
            Figure(f"{what}: at most", max(one.found_s[name]), "s"),
            Figure(f"{what}: bytes after it / best window's, median", one.median_share(name), ""),
        ]
    return made
