"""Whether the next run of an application is placed, by what its runs took.

What is believed to be faster is done. A small share of runs is done the other way, so that the belief rests on runs of
the same days: `allocate.control` of them while the answer is open, one in `CLEAR_RUNS` afterwards. With other OSTs than
before there is no evidence yet, and the first run after the change is such a control.

An OST that is known to be sick, full or gone is what placing is for: then nothing is decided here, and no such run
counts.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from tarazu.evidence.compare import Comparison, compare
from tarazu.evidence.outcomes import Outcome
from tarazu.left import A_CONTROL, PLACED_NOT_FASTER
from tarazu.trace.records import LayoutKind
from tarazu.units import counted

RUNS = 60
"""The newest of an application that are looked at."""
FIRST_PLACED = 3
"""Runs of an application that are placed before one is left as a control."""
COMPARED = 2
"""So many are enough where as many were left before, as of who observes first; one, where it is slower for sure."""
CLEAR_RUNS = 50
"""One in so many is a control once the answer is clear."""
CHANCE = 0.5
"""Of a run to be the control that is due: no control always meets the same turn of a job that repeats itself."""


class NextRun(NamedTuple):
    """What is known of it before it begins."""

    id: str
    usable_osts: int
    """Of the file system now."""
    kind: LayoutKind
    """Of the layouts that most of its bytes would get."""
    beside_others: bool = False
    """Of the same application, as tasks of a job array: they know nothing of one another."""


class Decision(NamedTuple):
    place: bool
    reason: str = ""
    """Why not."""


PLACE = Decision(True)


def decide(runs: Sequence[Outcome], next_run: NextRun, control: float, least_gain: float) -> Decision:
    """runs: oldest first; control: share of runs (`allocate.control`), 0: all are placed; least_gain: as in
    `allocate.least_gain`, negative: all are placed.
    """
    if control <= 0 or least_gain < 0:
        return PLACE
    same = comparable(runs, next_run.usable_osts, next_run.kind)
    belief = compare(same, expected_gain(same))
    both = bool(belief.placed and belief.left)
    slower = both and belief.highest < least_gain
    compared = min(belief.placed, belief.left) >= COMPARED
    if sum(run.arm == "placed" for run in runs) < FIRST_PLACED and not (slower or compared):
        return PLACE
    clear = both and not belief.lowest < least_gain <= belief.highest
    share = min(control, 1 / CLEAR_RUNS) if clear else control
    if belief.gain >= least_gain or not both:
        if _due(same, "left", share, clear, next_run):
            return Decision(False, f"{A_CONTROL}{_so_far(belief)}")
        return PLACE
    if _due(same, "placed", share, clear, next_run):
        return PLACE
    return Decision(False, f"{PLACED_NOT_FASTER}{compare(same)}")


def comparable(runs: Sequence[Outcome], usable_osts: int, kind: LayoutKind) -> list[Outcome]:
    """Those on as many OSTs, all of them well, and placed with layouts of this kind."""
    return [
        run
        for run in runs[-RUNS:]
        if run.well and run.usable_osts in (0, usable_osts) and (run.arm == "left" or run.kind in ("", kind))
    ]


def expected_gain(runs: Sequence[Outcome]) -> float | None:
    """That the estimate promised, of the placed runs in the middle; None: nobody knows."""
    gains = [run.expected_gain for run in runs if run.arm == "placed" and run.expected_gain]
    return median(gains) if gains else None


def _so_far(belief: Comparison) -> str:
    if belief.left:
        return str(belief)
    return (
        f"{counted(belief.placed, 'run')} placed, none left" if belief.placed else "no run on these OSTs yet"
    )


def _due(runs: Sequence[Outcome], arm: str, share: float, clear: bool, next_run: NextRun) -> bool:
    """Whether the next run is one of the few: two in a row of 2 / share runs while the answer is open, else one."""
    recent = runs[-(round((1 if clear else 2) / share) - 1) :]
    done = sum(run.arm == arm for run in recent)
    if done >= math.ceil((len(recent) + 1) * share):
        return False
    if next_run.beside_others or any(after.start_s < before.end_s for before, after in pairwise(recent)):
        return _drawn(next_run.id) < share
    return done == 0 or _drawn(next_run.id) < CHANCE


def _drawn(id: str) -> float:
    """From 0 to 1, the same for the same run."""
    return zlib.crc32(id.encode("utf-8", "surrogateescape")) / 2**32
