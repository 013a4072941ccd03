"""The 144 situations with TWINS' seven windows, FIFO, HBRR and shortest job first, request by request: who gains."""

from __future__ import annotations

import csv
import os
import statistics
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from tarazu.parts.council.study.requests import dataset, situations
from tarazu.parts.council.study.requests.dataset import Dataset
from tarazu.parts.council.study.requests.gains import MATTERS, Gain, cells, gains, write
from tarazu.parts.council.study.requests.situation import SCALE, TABLE_III
from tarazu.parts.council.study.requests.system import GRID5000
from tarazu.sim.study.runner import cores
from tests.benchmarks.figure import Figure

MOST_S = 240.0
"""For all of them on two cores."""
TABLE = Path(__file__).parents[3] / "docs" / "tuning-situations.csv"
KEPT = "TARAZU_TUNE_DATA"
"""A folder in which runs of the long form are kept and found again (environment); without it they are made anew."""

KINDS = tuple(
    (shared, spatiality, kib)
    for kib in (32, 256)
    for shared, spatiality in ((True, "strided"), (True, "contiguous"), (False, "contiguous"))
)


@cache
def data(short: bool) -> tuple[Dataset, float, int]:
    """The data set, how long it took, and how many cases have no result; made once for all modules of this folder."""
    part = situations.SHORT_PART if short else SCALE
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        kept = "" if short else os.environ.get(KEPT)
        found = situations.run(Path(kept or folder), part=part)
        took_s = time.monotonic() - began
        arrays = dataset.gathered(found.rows)
        if kept:
            dataset.write(arrays, Path(kept) / "situations.npz")
            write(gains(arrays), Path(kept))
    return arrays, took_s, len(found.lost)


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works: so few requests say nothing."""
    found, took_s, lost = data(short)
    # Runs that were kept took no time.
    judged_s = None if short or os.environ.get(KEPT) else MOST_S
    runs = gains(found)
    part = situations.SHORT_PART if short else SCALE
    print(f"  each process makes the first 1/{part} of its requests (of 4 GB in all)", file=sys.stderr)
    return [
        Figure("all runs (1,008, and 432 of other schedulers)", took_s, "s", most=judged_s),
        Figure("cores", cores(), ""),
        Figure("cases without a result", lost, "", most=0),
        Figure("observations of I/O nodes", len(found.reward), ""),
        Figure(f"lines of {TABLE.name} that are others now", _others(runs), "", most=None if short else 0),
        *judged(runs, short),
    ]


def _others(runs: tuple[Gain, ...]) -> int:
    with TABLE.open(newline="") as file:
        told = {tuple(line) for line in csv.reader(file)}
    return sum(cells(one) not in told for one in runs)


def _kind(runs: tuple[Gain, ...], shared: bool, spatiality: str, kib: int) -> list[Figure]:
    """A line of the table in docs/tuning-study.md."""
    found = [
        one
        for one in runs
        if one.situation[2:4] == (shared, spatiality) and one.situation.request_bytes == kib << 10
    ]
    best = sorted(100 * one.gain for one in found)
    name = f"{'shared' if shared else 'own'}, {spatiality}, {kib} KB"
    return [
        Figure(f"{name}: best window, least", best[0], "%"),
        Figure(f"{name}: median", statistics.median(best), "%"),
        Figure(f"{name}: most", best[-1], "%"),
        Figure(f"{name}: gain 5 % or more", sum(gain >= 5 for gain in best), ""),
        Figure(f"{name}: lose 1 % or more", sum(gain <= -1 for gain in best), ""),
        Figure(f"{name}: worst window", 100 * min(one.loss for one in found), "%"),
    ]


def judged(runs: tuple[Gain, ...], short: bool) -> list[Figure]:
    """What docs/tuning-study.md says of the situations."""

    def least(value: float) -> float | None:
        return None if short else value

    limit = GRID5000.servers * GRID5000.disk.bytes_per_s
    highest = max(max(one.bytes_per_s) for one in runs)
    best = sorted(one.gain for one in runs)
    gaining, losing = sum(gain >= 0.05 for gain in best), sum(gain <= -0.01 for gain in best)
    matters = sum(one.spread >= MATTERS for one in runs)
    worst = 100 * min(one.loss for one in runs)
    figures = [
        Figure("situations", len(runs), "", least=144),
        Figure("highest rate of all, of the four disks' own", highest / limit, "", most=1.0),
        Figure("largest gain of the best window (paper: +48 %)", 100 * best[-1], "%", least=least(48.0)),
        Figure("gain of the best window, median", 100 * best[len(best) // 2], "%"),
        Figure("the best window gains 5 % or more: situations", gaining, "", least=least(40)),
        Figure("even the best window loses 1 % or more: situations", losing, "", least=least(1)),
        Figure("largest loss of a wrong window", worst, "%", most=None if short else -20.0),
        Figure("a wrong window costs 10 % or more: situations", matters, "", least=least(72)),
        Figure("one window is clearly the best: situations", sum(one.clear for one in runs), ""),
    ]
    figures += [figure for kind in KINDS for figure in _kind(runs, *kind)]
    by_situation = {one.situation: one for one in runs}
    for letter, situation in TABLE_III.items():
        one = by_situation[situation]
        figures.append(Figure(f"{letter}: best window {one.best}, beside FIFO and HBRR", 100 * one.gain, "%"))
    return figures
