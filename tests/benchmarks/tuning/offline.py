"""Learners on sampled observations of the 144 situations x 7 windows (paper C, section V-B).

`python -m tests.benchmarks.tuning.offline situations.npz --repetitions 100` prints the tables from a data set that is
there; else the simulations are run first (`TARAZU_TUNE_DATA=folder` keeps them).
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

from tarazu.sim.requests import dataset
from tarazu.sim.requests.situation import SITUATIONS, TABLE_III
from tarazu.sim.tuning import measured, offline
from tarazu.sim.tuning.measured import Floats, Measured
from tarazu.tune import learning
from tarazu.tune.pattern import Pattern
from tests.benchmarks.figure import Figure
from tests.benchmarks.tuning import situations

PAPER, OURS = "epsilon-greedy", "tarazu"
WINDOWS = 7
CLEAR = 0.1
"""A best window is clear where it is so far ahead of the next."""
SEED = 1
"""Of the judged simulations and draws."""
Cell = tuple[str, str, int, int]
"""Data set, learner, number of situation, repetitions."""


@cache
def data(path: str) -> tuple[Measured, ...]:
    return measured.generated(SEED) if path == "generated" else measured.simulated(dataset.read(Path(path)))


def situation(cell: Cell) -> list[offline.Curves]:
    """All windows with which one situation starts."""
    path, name, number, repetitions = cell
    one = data(path)[number]
    return [
        offline.scenario(one, name, start, repetitions, SEED * 10_000 + number * WINDOWS + start)
        for start in range(WINDOWS)
    ]


def curves(path: str, name: str, repetitions: int) -> tuple[Floats, Floats, Floats]:
    """Performance and precision (144, 7, bins), regret (144, 7)."""
    cells = [(path, name, number, repetitions) for number in range(len(data(path)))]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(situation, cells, chunksize=4))
    return (
        np.array([[c.performance for c in starts] for starts in found]),
        np.array([[c.precision for c in starts] for starts in found]),
        np.array([[c.regret for c in starts] for starts in found]),
    )


def concurrent(
    path: str, name: str, repetitions: int, length: int = 600, **options: bool
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
            learner = learning.named(name, WINDOWS, seed, **options)
            which, windows = offline.together(several, learner, length, seed, seed % WINDOWS)
            rows.append(shares[which, windows])
    performance = np.array(rows).mean(0)
    return float((1 - performance).sum()), performance


def figure_5(path: str, name: str, repetitions: int, length: int = 1800) -> Floats:
    """(6,): precision in the last tenth, the six patterns mixed. A and F are one pattern on other numbers of nodes;
    another number of files keeps them apart.
    """
    all_ = data(path)
    six = [all_[SITUATIONS.index(s)] for s in TABLE_III.values()]
    six = [
        one._replace(pattern=Pattern(*one.pattern[:2], 4**at, one.pattern[3])) for at, one in enumerate(six)
    ]
    best = np.array([int(np.argmax(one.shares)) for one in six])
    found = []
    for repetition in range(repetitions):
        learner = learning.named(name, WINDOWS, repetition)
        which, windows = offline.together(six, learner, length, repetition, repetition % WINDOWS)
        late = slice(length - length // 10, length)
        right = windows[late] == best[which[late]]
        found.append([right[which[late] == at].mean() for at in range(6)])
    return np.asarray(np.array(found).mean(0))


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
    result = {name: curves(path, name, repetitions) for name in (PAPER, OURS)}
    result |= {name: curves(path, name, others) for name in learning.NAMES if others and name not in result}
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
    first, last = precision[..., 0].mean(1), precision[..., -1].mean(1)
    clear = lead >= min(CLEAR, lead.max())
    gain = 100 * (last / np.maximum(first, 1e-9) - 1)
    for what, of in (("minimum", np.min), ("median", np.median), ("mean", np.mean), ("maximum", np.max)):
        found.append(Figure(f"table II, precision first to last bin, {what}", float(of(gain)), "%"))
    for letter, s in TABLE_III.items():
        at = SITUATIONS.index(s) if len(all_) == len(SITUATIONS) else 0
        for name in (PAPER, OURS):
            found.append(
                Figure(f"table IV, {letter}, {name}: precision", float(result[name][1][at, :, -1].mean()), "")
            )
            found.append(
                Figure(
                    f"table IV, {letter}, {name}: performance", float(result[name][0][at, :, -1].mean()), ""
                )
            )
    for name in (PAPER, OURS):
        for letter, value in zip(TABLE_III, figure_5(path, name, max(2, repetitions))):
            found.append(Figure(f"figure 5, {letter}, {name}: precision", float(value), ""))
    for name, options in ((PAPER, {}), (OURS, {}), (OURS, {"lend": True})):
        lost, together = concurrent(path, name, max(2, others or 2), **options)
        what = f"{name}, lending" if options else name
        found.append(Figure(f"{what}: 12 patterns mixed, lost of 600 observations", lost, ""))
        found.append(
            Figure(
                f"{what}: 12 patterns mixed, performance of the first 120", float(together[:120].mean()), ""
            )
        )
    for name in (PAPER, OURS):
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
        return [f._replace(most=None, least=None) for f in figures("generated", 1, 0)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "situations.npz"
        dataset.write(situations.data(False)[0], path)
        return figures(str(path), 20, 3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Offline evaluation of a data set of situations.")
    parser.add_argument("data", help="situations.npz, or `generated`")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--others", type=int, default=3, help="repetitions of the other learners; 0: none")
    options = parser.parse_args()
    shown = figures(options.data, options.repetitions, options.others)
    print("\n".join(map(str, shown)))
    sys.exit(not all(figure.holds for figure in shown))
