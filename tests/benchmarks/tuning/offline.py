"""Learners on sampled observations of the 144 situations x 7 windows (paper C, section V-B).

The simulations are run first; `TARAZU_TUNE_DATA=folder` keeps them.
"""

from __future__ import annotations

import math

import numpy as np

from tarazu.cli.output import Progress
from tarazu.parts.council.study import offline, tables
from tarazu.parts.council.study.learners import LEARNERS, OURS, PAPER
from tarazu.parts.council.study.requests.situation import SCALE, TABLE_III, WINDOWS
from tarazu.parts.council.study.requests.situations import SHORT_PART, run
from tests.benchmarks.figure import Figure
from tests.benchmarks.tuning.situations import folder

CLEAR = 0.1
"""A best window is clear where it is so far ahead of the next."""


def measure(short: bool) -> list[Figure]:
    with folder(short) as place:
        run(place, part=SHORT_PART if short else SCALE)
        found = figures(str(place), 1 if short else tables.REPETITIONS)
    # So few repetitions judge nothing; that it runs is what is seen.
    return [f._replace(most=None, least=None) for f in found] if short else found


def changed(path: str, name: str) -> float:
    """Observations of 300 that are lost after the system changed in the 301st, mean: windows are mirrored, at 0.6 times
    the bandwidth.
    """
    after = []
    for number, one in tables.data(path).items():
        for repetition in range(tables.OTHERS):
            seed = tables.SEED * 10_000 + number * 100 + repetition
            learner, other = LEARNERS[name](len(WINDOWS), seed), one.mirrored(0.6)
            _, windows = offline.through([(one, 300), (other, 300)], learner, seed, seed % len(WINDOWS))
            after.append(float((1.0 - other.shares[windows]).sum()))
    return float(np.mean(after))


def figures(path: str, repetitions: int) -> list[Figure]:
    found: list[Figure] = []
    lead = np.array([one.lead for one in tables.data(path).values()])
    with Progress() as progress:
        evaluated = tables.evaluate(path, repetitions, progress)
    result, until = evaluated.all, {}
    for name, (performance, precision, regret) in result.items():
        until[name] = offline.reached(performance.mean((0, 1)))
        scenarios = np.array([[offline.reached(p) for p in row] for row in performance])
        found += [
            Figure(f"{name}: observations to 0.95, mean of all scenarios", until[name], ""),
            Figure(f"{name}: scenarios that do not reach it", float(np.isinf(scenarios).mean()), ""),
            Figure(f"{name}: regret, observations of {offline.LENGTH}", float(regret.mean()), ""),
            Figure(f"{name}: performance, last 50 observations", float(performance[..., -5:].mean()), ""),
            Figure(f"{name}: precision, last 50 observations", float(precision[..., -5:].mean()), ""),
            Figure(f"{name}: a changed system, lost of the 300 after it", changed(path, name), ""),
        ]
    for figure, of in ((4, evaluated.alone), (5, evaluated.mixed)):
        for name, values in of.items():
            for letter, value in zip(TABLE_III, values[:, -3:].mean(1), strict=True):
                found.append(Figure(f"figure {figure}, {letter}, {name}: precision, last 30", value, ""))
    performance, precision, regret = result[PAPER]
    ours = result[OURS]
    last, clear = precision[..., -1].mean(1), lead >= min(CLEAR, lead.max())
    lower = (ours.regret.mean(1) < regret.mean(1)).mean()
    found += [
        Figure("situations with a clear best window (10 % ahead)", float(clear.sum()), ""),
        Figure(f"{PAPER}: best precision where it is clear", float(last[clear].max()), "", least=0.8),
        Figure(f"{PAPER}: mean precision where it is clear", float(last[clear].mean()), "", least=0.6),
        Figure(f"{PAPER}: performance of all, last bin", float(performance[..., -1].mean()), "", least=0.92),
        Figure("observations to 0.95: ours beside the paper's", until[OURS] / until[PAPER], "", most=0.5),
        Figure("situations where ours has less regret", float(lower), "", least=0.85),
        Figure("regret of ours beside the paper's", float(ours.regret.mean() / regret.mean()), "", most=1.0),
    ]
    return [f for f in found if math.isfinite(f.value)]
