"""Where Lustre's own balance makes the same directories, in expectation: what a choice of MDTs has to win against.

A client puts a directory on its parent's MDT, or deals directories to the MDTs in turn where the default of the parent
says so (`max_inherit_rr`) and below the root. Where MDTs are unequally full (`lmv.*.qos_threshold_rr`, 5 %) it draws by
free space and inodes instead, but stays with a parent's MDT that has enough of them. As read in `lmv_obd.c` of 2.17.
Each client begins somewhere else in its turn; here one turn goes through all, as well as it can be for Lustre.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tarazu.allocate.mdts_course import LEFT, Course
from tarazu.model import DirectorySpec, Mdt, SystemView

DRAWS = 8
"""Beginnings of the turn, or draws by space, whose mean counts; of few MDTs as many as there are."""
THRESHOLD = 13 / 256
"""By so much of the fullest's free space or inodes another may have less: 5 % as Lustre keeps it."""
NOWHERE = -2
"""Where it is not sure what Lustre does."""


def time_s(view: SystemView, specs: Sequence[DirectorySpec], course: Course) -> float:
    """Seconds as `Course.time_s`, by the mean over beginnings; infinite where one meets an MDT that may not be used, or
    that has no room for it. The course is as before afterwards.
    """
    mdts = [mdt for mdt in view.mdts if mdt.active]
    before = course.columns.copy()
    course.clear()
    times = [_drawn(mdts, specs, course, nth) for nth in range(min(DRAWS, len(mdts)))]
    course.clear()
    for i, column in enumerate(before):
        course.put(i, column)
    return float(np.mean(times))


def surely_on(view: SystemView, specs: Sequence[DirectorySpec], mdts: Sequence[int]) -> list[int]:
    """The MDT on which Lustre makes each directory in any case, if its parent lies as `mdts` says; else NOWHERE."""
    known = {mdt.index: mdt for mdt in view.mdts if mdt.active}
    even, average = is_even(list(known.values())), _average(list(known.values()))
    there = []
    for spec in specs:
        parent = known.get(mdts[spec.parent] if spec.parent >= 0 else spec.mdt)
        stays = parent is not None and not spec.in_turn and (even or _enough(parent, average, spec.depth))
        there.append(parent.index if parent is not None and stays else NOWHERE)
    return there


def is_even(mdts: Sequence[Mdt]) -> bool:
    """Whether free space and inodes are so near one another that Lustre does not look at them."""
    for free in ([m.avail_bytes for m in mdts], [m.files_free for m in mdts]):
        if min(free, default=0) < max(free, default=0) * (1 - THRESHOLD):
            return False
    return True


def _drawn(mdts: Sequence[Mdt], specs: Sequence[DirectorySpec], course: Course, nth: int) -> float:
    """One beginning; afterwards the course holds it."""
    even, average = is_even(mdts), _average(mdts)
    weights = np.array([_free(m) for m in mdts])
    random = np.random.default_rng(nth)
    turn = nth
    places: list[int] = []
    for i, spec in enumerate(specs):
        known = [n for n, m in enumerate(mdts) if m.index == spec.mdt]
        # A parent of which nothing is known lies on each once.
        place = places[spec.parent] if spec.parent >= 0 else known[0] if known else nth % len(mdts)
        if even and spec.in_turn:
            place, turn = turn % len(mdts), turn + 1
        elif not even and (spec.in_turn or not _enough(mdts[place], average, spec.depth)) and weights.any():
            place = int(random.choice(len(mdts), p=weights / weights.sum()))
        places.append(place)
        column = course.position.get(mdts[place].index, LEFT)
        if column == LEFT:
            return math.inf
        course.put(i, column)
    time = course.time_s() if (course.room >= 0).all() else math.inf
    course.clear()
    return time


def _enough(parent: Mdt, average: float, depth: int) -> bool:
    """Whether a directory of that depth stays with a parent that has so much left."""
    return _free(parent) >= average * 16 / (depth + 10)


def _free(mdt: Mdt) -> float:
    """What Lustre weighs: free bytes times free inodes."""
    return float(mdt.avail_bytes >> 16) * float(mdt.files_free >> 8)


def _average(mdts: Sequence[Mdt]) -> float:
    return sum(map(_free, mdts)) / len(mdts) if mdts else 0.0
