"""How far the estimate's times are from those that placed runs took."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from tarazu.evidence.outcomes import Outcome

OFF = 4 / 3
"""Factor, up or down, from which the estimate is off: by more than a third."""
LEAST_RUNS = 5
"""Fewer say nothing."""


def factor(runs: Iterable[Outcome]) -> tuple[float, int]:
    """(measured over expected time, in the middle; of how many placed runs); 1.0 where too few can be compared."""
    ratios = [
        run.seconds / run.expected_s
        for run in runs
        if run.arm == "placed" and run.well and run.expected_s > 0
    ]
    return (median(ratios), len(ratios)) if len(ratios) >= LEAST_RUNS else (1.0, len(ratios))


def is_off(by: float) -> bool:
    return not 1 / OFF <= by <= OFF
