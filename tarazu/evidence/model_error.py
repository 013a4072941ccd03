"""How far the estimate's times are from those that placed runs took, and what corrects them.

One factor for writing and one for requests to the MDS, learned where the histories are, of an application on a file
system, and brought to mdsd with what is asked for it. A run says something of the part that took most of its time. The
median of their logarithms counts, of few runs less than of many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

from tarazu.evidence.outcomes import Outcome
from tarazu.model import MOST_CORRECTION, Correction

OFF = 4 / 3
"""Factor, up or down, from which the estimate is off: by more than a third."""
LEAST_RUNS = 3
"""Fewer correct nothing."""
NEWEST = 9
"""Placed runs that are looked at: five are enough to show that the system, or what mdsd knows of it, has changed."""
RECENT_S = 14 * 86400.0
"""Older ones say nothing: an application that is left to Lustre by a correction is placed again after that time."""
AS_KNOWN = 1
"""Runs that a correction of 1 counts for."""
JUDGED = 5
"""The newest placed runs of an application, by which the corrected estimate is judged."""
AS_ESTIMATED = Correction()


def correction(runs: Iterable[Outcome], now_s: float) -> Correction:
    """By these runs of an application, oldest first; now_s: Unix time."""
    streams: list[float] = []
    requests: list[float] = []
    for run in [run for run in _placed(runs) if run.start_s >= now_s - RECENT_S][-NEWEST:]:
        parts = run.expected_s, run.expected_requests_s
        most, other = max(parts), min(parts)
        seconds = max(run.seconds - other, most / MOST_CORRECTION)
        (streams if most == run.expected_s else requests).append(math.log(seconds / most))
    return Correction(_factor(streams), _factor(requests))


def corrected_s(run: Outcome, by: Correction) -> float:
    """Expected seconds."""
    return by.streams * run.expected_s + by.requests * run.expected_requests_s


def off(runs: Iterable[Outcome]) -> list[float]:
    """Measured over expected time of an application's newest placed runs, each as those before it corrected it."""
    placed = _placed(runs)
    newest = list(enumerate(placed))[-JUDGED:]
    return [run.seconds / corrected_s(run, correction(placed[:n], run.start_s)) for n, run in newest]


def is_off(by: float) -> bool:
    return not 1 / OFF <= by <= OFF


def _placed(runs: Iterable[Outcome]) -> list[Outcome]:
    return [run for run in runs if run.arm == "placed" and run.well and run.expected_s > 0]


def _factor(logs: Sequence[float]) -> float:
    if len(logs) < LEAST_RUNS:
        return 1.0
    known = math.exp(median(logs) * len(logs) / (len(logs) + AS_KNOWN))
    return max(1 / MOST_CORRECTION, min(known, MOST_CORRECTION))
