"""The 144 situations with TWINS' seven windows, FIFO and HBRR, request by request: who gains."""

from __future__ import annotations

import csv
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tarazu.parts.council.study.requests import situations
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


@contextmanager
def folder(short: bool) -> Iterator[Path]:
    """Where the runs are."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(("" if short else os.environ.get(KEPT)) or made)


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works: so few requests say nothing."""
    kept = None if short else os.environ.get(KEPT)
    began = time.monotonic()
    with folder(short) as place:
        found = situations.run(place, part=situations.SHORT_PART if short else SCALE)
    took_s = time.monotonic() - began
    runs = gains(found.rows)
    if kept:
        write(runs, Path(kept))
    return [
        # Runs that were kept took no time.
        Figure("all runs (1,296)", took_s, "s", most=None if short or kept else MOST_S),
        Figure("cores", cores(), ""),
        Figure("cases without a result", len(found.lost), "", most=0),
        Figure("observations of I/O nodes", sum(len(row.rewards) for row in found.rows), ""),
        Figure(f"lines of {TABLE.name} that are others now", _others(runs), "", most=None if short else 0),
        *judged(runs, short),
    ]


def _others(runs: tuple[Gain, ...]) -> int:
    with TABLE.open(newline="") as file:
        told = {tuple(line) for line in csv.reader(file)}
    return sum(cells(one) not in told for one in runs)


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
        Figure("the best window gains 5 % or more: situations", gaining, "", least=least(40)),
        Figure("even the best window loses 1 % or more: situations", losing, "", least=least(1)),
        Figure("largest loss of a wrong window", worst, "%", most=None if short else -20.0),
        Figure("a wrong window costs 10 % or more: situations", matters, "", least=least(72)),
    ]
    by_situation = {one.situation: one for one in runs}
    for letter, situation in TABLE_III.items():
        one = by_situation[situation]
        figures.append(Figure(f"{letter}: best window {one.best}, beside FIFO and HBRR", 100 * one.gain, "%"))
    return figures
