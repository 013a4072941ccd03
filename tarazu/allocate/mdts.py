"""Which MDT each directory is made on, by time: a job step waits for its slowest MDT (paper, section 8.4).

The largest directories first, each where it ends soonest; then exchanges; then what need not be remote goes back to its
parent's MDT; and of few directories a search that proves the best. Where Lustre's own balance does as well, nothing is
chosen.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from tarazu.allocate import mdts_lustre
from tarazu.allocate.mdts_course import LEFT, Course, bound_s, build
from tarazu.config import Weights
from tarazu.left import AS_GOOD
from tarazu.model import DirectorySpec, SystemView

EXACT = 6_000
"""Steps of the search that proves an assignment best: all of six directories on four MDTs."""
ROUNDS = 300
"""Exchanges of one wave, at most."""
STEPS = 400_000
"""Of exchanges, in all: about a second. Who asks for more directories, on more MDTs, gets fewer of them."""
LOOKED_AT = 512
"""Directories of the slowest MDT that an exchange looks at, at most."""
EVEN = 5e-4
"""Of a wave's time: so near to what all MDTs would take together it is not made shorter."""
SLACK = 1e-3
"""Of a wave's time: so much longer it may be for a directory to stay on its parent's MDT."""
FEW_MDTS = "fewer than two usable MDTs"
NO_ROOM = "no MDT has inodes and space left for it"


class MdtAllocation(msgspec.Struct, frozen=True):
    """What each directory gets. Times are modelled: seconds, if each MDT makes one create at a time."""

    mdts: tuple[int, ...]
    """Index of the MDT, or LEFT."""
    cost: float = 0.0
    """Until the last create of the step: by these, or by Lustre's own balance where all are left to it."""
    bound: float = 0.0
    """No assignment of these directories ends sooner."""
    own: float = 0.0
    """Where Lustre's own balance puts them; infinite where it could fill an MDT, or meet one that may not be used."""
    why: str = ""
    """Why all are left; or some, for want of room."""


def allocate(
    view: SystemView, specs: Sequence[DirectorySpec], weights: Weights, least_gain: float = 0.0
) -> MdtAllocation:
    """An MDT for each directory, or LEFT where Lustre's own balance puts it there, or does as well for all of them.

    `specs`: each parent before its children. `least_gain`: share of the time by which they must be made sooner; below
    0: whatever it gains.
    """
    nothing = (LEFT,) * len(specs)
    if sum(mdt.usable for mdt in view.mdts) < 2:
        return MdtAllocation(nothing, why=FEW_MDTS)
    if not any(spec.creates for spec in specs):
        return MdtAllocation(nothing, why=AS_GOOD)
    course = build(view, specs, weights)
    bound = bound_s(course)
    homeless = place(course)
    cost, own = course.time_s(), mdts_lustre.time_s(view, specs, course)
    if not homeless and least_gain >= 0 and own <= cost * (1 + least_gain):
        return MdtAllocation(nothing, own, bound, own, AS_GOOD)
    mdts = [LEFT if column == LEFT else course.mdts[column].index for column in course.columns]
    there = mdts_lustre.surely_on(view, specs, mdts)
    chosen = tuple(LEFT if mdt == surely else mdt for mdt, surely in zip(mdts, there, strict=True))
    if homeless and all(mdt == LEFT for mdt in mdts):
        return MdtAllocation(nothing, own, bound, own, NO_ROOM)
    return MdtAllocation(chosen, cost, bound, own, NO_ROOM if homeless else "")


def place(course: Course) -> bool:
    """Give each directory a column; whether one found no room anywhere."""
    homeless = _greedy(course)
    of_wave: list[list[int]] = [[] for _ in course.ours]
    for i, wave in enumerate(course.waves):
        of_wave[wave].append(i)
    most = course.steps + STEPS
    for wave, directories in enumerate(of_wave):
        of_this = (most - course.steps) // (len(of_wave) - wave)
        _shorten(course, wave, directories, course.steps + of_this)
    _stay(course)
    if not homeless:
        _exact(course)
    return homeless


def _greedy(course: Course) -> bool:
    """The largest of a wave first, each where it ends soonest; parents before their children."""
    homeless = False
    depths: list[int] = []
    for spec in course.specs:
        depths.append(depths[spec.parent] + 1 if spec.parent >= 0 else 0)
    order = sorted(
        range(len(course.specs)), key=lambda i: (course.waves[i], depths[i], -course.specs[i].creates)
    )
    for i in order:
        wave, parent, works = course.waves[i], course.parent(i), course.works(i)
        ends = (course.before[wave] + course.ours[wave] + works) * course.second_s[wave]
        ends[course.room < works] = math.inf
        best = int(ends.argmin())
        if not math.isfinite(ends[best]):
            homeless = True
        else:
            course.put(i, parent if parent != LEFT and ends[parent] <= ends[best] else best)
    return homeless


def _shorten(course: Course, wave: int, directories: Sequence[int], most_steps: int) -> None:
    """Move directories off the wave's slowest MDT, or exchange them for smaller ones, as long as that is shorter."""
    for _ in range(ROUNDS):
        if course.steps > most_steps:
            return
        times = course.times_of(wave)
        worst = int(times.argmax())
        if times[worst] <= course.level_of(wave) * (1 + EVEN):
            return
        members: list[list[int]] = [[] for _ in course.mdts]
        for i in directories:
            if course.columns[i] != LEFT:
                members[course.columns[i]].append(i)
        course.steps += len(directories) + min(len(members[worst]), LOOKED_AT) * len(course.mdts)
        for i, j, column in _exchanges(course, wave, worst, members)[:4]:
            touched = course.touched(i, j)
            now = course.time_of(touched)
            course.put(i, column)
            if j is not None:
                course.put(j, worst)
            if course.time_of(touched) < now * (1 - 1e-9) and (course.room >= 0).all():
                break
            course.put(i, worst)
            if j is not None:
                course.put(j, column)
        else:
            return


def _exchanges(
    course: Course, wave: int, worst: int, members: Sequence[Sequence[int]]
) -> list[tuple[int, int | None, int]]:
    """(directory of the worst MDT, one that comes for it, the other's MDT), those first after which the slower of both
    ends soonest.
    """
    second_s, loads = course.second_s[wave], course.before[wave] + course.ours[wave]
    now = float(loads[worst] * second_s[worst])
    promising: list[tuple[float, int, int | None, int]] = []
    for column in range(len(course.mdts)):
        if column == worst:
            continue
        # Both end together after so many creates have gone over.
        ideal = (now - loads[column] * second_s[column]) / (second_s[worst] + second_s[column])
        theirs = sorted((course.specs[j].creates, j) for j in members[column])
        for i in members[worst][:LOOKED_AT]:
            out, there = course.work(i, worst), course.work(i, column)
            at = bisect_left(theirs, (max(0, round(out - ideal)), -1))
            for j in (None, *(j for _, j in theirs[max(0, at - 1) : at + 1])):
                back, gone = (course.work(j, worst), course.work(j, column)) if j is not None else (0, 0)
                ends = max(
                    (loads[worst] - out + back) * second_s[worst],
                    (loads[column] + there - gone) * second_s[column],
                )
                if ends < now * (1 - 1e-9):
                    promising.append((float(ends), i, j, column))
    return [(i, j, column) for _, i, j, column in sorted(promising, key=lambda p: p[0])]


def _stay(course: Course) -> None:
    """Directories that need not be remote go back to their parent's MDT, the smallest first."""
    most = course.times().max(axis=1) * (1 + SLACK)
    for i in sorted(range(len(course.specs)), key=lambda i: course.specs[i].creates):
        column, parent = course.columns[i], course.parent(i)
        if LEFT in (column, parent) or column == parent:
            continue
        course.put(i, parent)
        longer = any(course.times_of(wave).max() > most[wave] for wave in course.touched(i))
        if longer or (course.room < 0).any():
            course.put(i, column)


def _exact(course: Course) -> None:
    """Search all assignments for a shorter one, or one as short with fewer remote directories, where these are few."""
    count, columns = len(course.specs), range(len(course.mdts))
    if sum(len(columns) ** n for n in range(count + 1)) > EXACT:
        return
    best, found = (course.time_s(), course.remote()), course.columns.copy()
    course.clear()

    def search(i: int) -> None:
        nonlocal best, found
        now = (course.time_s(), course.remote())
        if _no_better(now, best):  # neither shrinks by what comes: parents are before their children
            return
        if i == count:
            best, found = now, course.columns.copy()
            return
        for column in columns:
            if course.room[column] >= course.work(i, column):
                course.put(i, column)
                search(i + 1)
                course.put(i, LEFT)

    search(0)
    for i, column in enumerate(found):
        course.put(i, column)


def _no_better(one: tuple[float, int], other: tuple[float, int]) -> bool:
    """Longer, or as long and not of fewer remote directories."""
    if abs(one[0] - other[0]) > 1e-9 * other[0]:
        return one[0] > other[0]
    return one[1] >= other[1]
