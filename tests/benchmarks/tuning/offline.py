"""Learners on sampled observations of the 144 situations x 7 windows (paper C, section V-B).

`python -m tests.benchmarks.tuning.offline situations.npz --repetitions 10` judges a data set that is there, sooner;
else the simulations are run first (`TARAZU_TUNE_DATA=folder` keeps them).
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path

import numpy as np

from tarazu.cli.output import Progress
from tarazu.parts.council.learner import Learner
from tarazu.parts.council.study import learning, offline, sampled
from tarazu.parts.council.study.measured import WINDOWS, Floats, Measured
from tarazu.parts.council.study.requests import dataset
from tarazu.parts.council.study.requests.situation import SITUATIONS, TABLE_III
from tarazu.parts.council.study.sampled import GENERATED, OURS, PAPER, REPETITIONS, SEED, SIX, data
from tests.benchmarks.figure import Figure
from tests.benchmarks.tuning import situations

CLEAR = 0.1
"""A best window is clear where it is so far ahead of the next."""
OTHERS = 3
"""Repetitions of the other learners, and of what is beside the paper's tables and figures."""


def concurrent(
    path: str, learner_of: type[Learner], repetitions: int, length: int = 600
) -> tuple[float, Floats]:
    """The twelve patterns of each deployment (I/O nodes, processes) mixed, one council each, patterns of own nodes.
    Observations lost in all, mean performance of each: (length,).
    """
    all_ = data(path)
    groups: dict[tuple[int, int], list[Measured]] = {}
    for s, one in zip(SITUATIONS, all_, strict=True):
        groups.setdefault((s.nodes, s.processes), []).append(one)
    rows = []
    for index, several in enumerate(groups.values()):
        shares = np.array([one.shares for one in several])
        for repetition in range(repetitions):
            seed = SEED * 1000 + index * 100 + repetition
            learner = learner_of(WINDOWS, seed)
            which, windows = offline.together(several, learner, length, seed, seed % WINDOWS)
            rows.append(shares[which, windows])
    performance = np.array(rows).mean(0)
    return float((1 - performance).sum()), performance


def changed(path: str, name: str, repetitions: int) -> tuple[float, float]:
    """(observations of 300 lost after the system changed in the 301st, of 600 lost where demand varies), means. The
    changed one has mirrored windows and 0.6 times the bandwidth; demand varies as 128, 256 and 512 processes take turns
    each 20 observations.
    """
    all_ = data(path)
    after, varying = [], []
    for number, one in enumerate(all_):
        for repetition in range(repetitions):
            seed = SEED * 10_000 + number * 100 + repetition
            learner = learning.named(name, WINDOWS, seed)
            phases = [(one, 300), (offline.mirrored(one, 0.6), 300)]
            after.append((1 - offline.through(phases, learner, seed, seed % WINDOWS)[1]).sum())
    groups: dict[object, list[Measured]] = {}
    for s, one in zip(SITUATIONS, all_, strict=True):
        groups.setdefault(s._replace(processes=0), []).append(one)
    for number, several in enumerate(groups.values()):
        for repetition in range(repetitions):
            seed = SEED * 10_000 + number * 100 + repetition
            learner = learning.named(name, WINDOWS, seed)
            phases = [(several[turn % len(several)], 20) for turn in range(30)]
            lost = offline.through(phases, learner, seed, seed % WINDOWS)
            varying.append(sum((1 - one).sum() for one in lost))
    return float(np.mean(after)), float(np.mean(varying))


def figures(path: str, repetitions: int, others: int) -> list[Figure]:
    found: list[Figure] = []
    all_ = data(path)
    lead = np.array([one.lead for one in all_])
    with Progress() as progress:
        evaluated = sampled.evaluate(path, repetitions, others, tell=progress)
    result = evaluated.all
    until = {}
    for name, (performance, precision, regret) in result.items():
        until[name] = offline.reached(performance.mean((0, 1)))
        scenarios = np.array([[offline.reached(p) for p in row] for row in performance])
        found += [
            Figure(f"{name}: observations to 0.95, mean of all scenarios", until[name], ""),
            Figure(f"{name}: the same of each scenario, median", float(np.median(scenarios)), ""),
            Figure(f"{name}: scenarios that do not reach it", float(np.isinf(scenarios).mean()), ""),
            Figure(f"{name}: regret, observations of {offline.LENGTH}", float(regret.mean()), ""),
            Figure(f"{name}: performance, last 50 observations", float(performance[..., -5:].mean()), ""),
            Figure(f"{name}: precision, last 50 observations", float(precision[..., -5:].mean()), ""),
        ]
    performance, precision, regret = result[PAPER]
    ours = result[OURS]
    last = precision[..., -1].mean(1)
    clear = lead >= min(CLEAR, lead.max())
    operations = {"Total": sampled.improved(precision)} if path == GENERATED else sampled.table_2(precision)
    for operation, gain in operations.items():
        for what, value in zip(("minimum", "median", "mean", "maximum"), gain, strict=True):
            found.append(Figure(f"table II, {operation}, precision first to last bin, {what}", value, "%"))
    for letter, at in zip(TABLE_III, SIX, strict=True):
        for name in (PAPER, OURS):
            for what in ("precision", "performance"):
                value = float(getattr(result[name], what)[at, :, -1].mean())
                found.append(Figure(f"table IV, {letter}, {name}: {what}", value, ""))
    for figure, lines in ((4, evaluated.alone), (5, evaluated.mixed)):
        for name, values in lines.items():
            for letter, value in zip(TABLE_III, values[:, -3:].mean(1), strict=True):
                found.append(Figure(f"figure {figure}, {letter}, {name}: precision, last 30", value, ""))
    for what, learner_of in (
        (PAPER, learning.LEARNERS[PAPER]),
        (OURS, learning.LEARNERS[OURS]),
    ):
        lost, together = concurrent(path, learner_of, max(2, others or 2))
        found.append(Figure(f"{what}: 12 patterns mixed, lost of 600 observations", lost, ""))
        found.append(
            Figure(
                f"{what}: 12 patterns mixed, performance of the first 120", float(together[:120].mean()), ""
            )
        )
    for name in (PAPER, "forgetting", OURS):
        after, varying = changed(path, name, max(2, others or 2))
        found.append(Figure(f"{name}: a changed system, lost of the 300 after it", after, ""))
        found.append(Figure(f"{name}: varying demand, lost of 600", varying, ""))
    lower = (ours[2].mean(1) < regret.mean(1)).mean()
    found += [
        Figure("situations with a clear best window (10 % ahead)", float(clear.sum()), ""),
        Figure(f"{PAPER}: best precision where it is clear", float(last[clear].max()), "", least=0.8),
        Figure(f"{PAPER}: mean precision where it is clear", float(last[clear].mean()), "", least=0.6),
        Figure(f"{PAPER}: performance of all, last bin", float(performance[..., -1].mean()), "", least=0.92),
        Figure("observations to 0.95: ours beside the paper's", until[OURS] / until[PAPER], "", most=0.5),
        Figure("situations where ours has less regret", float(lower), "", least=0.85),
        Figure("regret of ours beside the paper's", float(ours[2].mean() / regret.mean()), "", most=1.0),
    ]
    return [f for f in found if math.isfinite(f.value)]


def measure(short: bool) -> list[Figure]:
    if short:
        # So few repetitions judge nothing; that it runs is what is seen.
        return [f._replace(most=None, least=None) for f in figures(GENERATED, 1, 0)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "situations.npz"
        dataset.write(situations.data(False)[0], path)
        return figures(str(path), REPETITIONS, OTHERS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Offline evaluation of a data set of situations.")
    parser.add_argument("data", help="situations.npz, or `generated`")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument(
        "--others", type=int, default=OTHERS, help="repetitions of the other learners; 0: none"
    )
    options = parser.parse_args()
    shown = figures(options.data, options.repetitions, options.others)
    print("\n".join(map(str, shown)))
    sys.exit(not all(figure.holds for figure in shown))
