"""`tarazu top`: what a frame costs at 3,600 OSTs, and what a new overview does."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from tarazu.cli.top.choice import FOLDS, TopChoice
from tarazu.cli.top.screen import screen
from tests.benchmarks.figure import Figure

EXAMPLE = Path(__file__).parents[3] / "docs" / "top.py"
FRAME_S = 0.020


def measure(short: bool) -> list[Figure]:
    spec = importlib.util.spec_from_file_location("pictured_top", EXAMPLE)
    assert spec and spec.loader
    pictured = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictured)
    times = 5 if short else 40
    overview = pictured.example()
    figures = []
    for fold in FOLDS:
        choice = TopChoice(fold=fold)
        took_s = _cpu_s(lambda choice=choice: screen(overview, choice, 160, 50), times)  # type: ignore[misc]
        figures.append(
            Figure(f"a frame of 3,600 OSTs, a line for each {fold}", 1e3 * took_s, "ms", 1e3 * FRAME_S)
        )
    few = pictured.example(48, 4)
    figures.append(
        Figure("a frame of 48 OSTs", 1e3 * _cpu_s(lambda: screen(few, TopChoice(), 100, 30), times), "ms")
    )
    return figures


def _cpu_s(work: Callable[[], object], times: int) -> float:
    """Processor time, so that what else runs here counts for little; the median."""
    taken = []
    for _ in range(times):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return median(taken)
