"""MDTs, and the directories of job steps that may be made on them, as arrays: what each takes where, and the time.

An MDT needs, for each create that is promised or asked for, its mean time of one, at the speed that it was seen to have
beside its peers. What others do there now it serves at the same time: with so many of their creates in flight (their
rate times their mean time, by Little's law) beside ours, ours take as much longer. A directory that does not lie on its
parent's MDT costs `REMOTE` creates more. Waves follow one another: the time of all is their sum, of each that of its
slowest MDT.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from tarazu.config import Weights
from tarazu.model import DirectorySpec, Mdt, SystemView

Array = np.ndarray

LEFT = -1
"""In place of an MDT: Lustre's own balance is to choose."""
REMOTE = 9
"""Creates that a directory takes in whose parent lies on another MDT, in one on the parent's: the mean `mkdir` of
`md_stats` took 57.1 ms on MDT0001, where all were remote, and 6.3 ms on MDT0000 (2.17.57, emulated; few samples)."""
CREATE_S = 500e-6
"""Of an MDT of which nothing was measured, as the fastest `mkdir` there: all are then alike."""
CREATE_BYTES = 4096
"""On the MDT for each file or directory, at most: a block; ldiskfs has set inodes aside."""


@dataclass
class Course:
    """One question. What is placed changes `columns`, and with it `ours` and `room`."""

    mdts: list[Mdt]
    """Those that may be used."""
    specs: Sequence[DirectorySpec]
    children: list[list[int]]
    waves: list[int]
    """Of each directory, numbered from 0."""
    second_s: Array
    """(waves, MDTs) seconds of one create."""
    before: Array
    """(waves, MDTs) creates that are promised there."""
    ours: Array
    """(waves, MDTs) creates of these directories, remote ones' cost among them."""
    room: Array
    """(MDTs,) creates for which inodes and space are left."""
    position: dict[int, int]
    """Index of an MDT → its column."""
    columns: list[int]
    """Of each directory: that of its MDT, or LEFT while it has none."""
    steps: int = 0
    """Of work on it, by which a search is bounded: directories that were moved, with those in them."""

    def parent(self, i: int) -> int:
        """Column of the MDT of a directory's parent; LEFT where it is not known, or may not be used."""
        spec = self.specs[i]
        return self.columns[spec.parent] if spec.parent >= 0 else self.position.get(spec.mdt, LEFT)

    def is_remote(self, i: int, column: int) -> bool:
        """Whether it lies apart from its parent there, as far as is known where that lies."""
        spec = self.specs[i]
        return (spec.parent >= 0 or spec.mdt >= 0) and self.parent(i) != column

    def work(self, i: int, column: int) -> int:
        """Creates that a directory makes of its MDT."""
        return self.specs[i].creates + REMOTE * self.is_remote(i, column)

    def works(self, i: int) -> Array:
        """(MDTs,) the same of each."""
        works = np.full(len(self.mdts), float(self.work(i, LEFT - 1)))
        if (parent := self.parent(i)) != LEFT:
            works[parent] = self.specs[i].creates
        return works

    def remote(self) -> int:
        """Directories that lie apart from their parents."""
        return sum(c != LEFT and self.is_remote(i, c) for i, c in enumerate(self.columns))

    def put(self, i: int, column: int) -> None:
        """Move a directory, or place it, or take it away; what its subdirectories cost follows."""
        self._add(i, -1)
        self.columns[i] = column
        self._add(i, 1)

    def touched(self, *directories: int | None) -> set[int]:
        """Waves whose times change when these are put elsewhere."""
        of = (each for i in directories if i is not None for each in (i, *self.children[i]))
        return {self.waves[each] for each in of}

    def _add(self, i: int, sign: int) -> None:
        self.steps += 1 + len(self.children[i])
        for each in (i, *self.children[i]):
            column = self.columns[each]
            if column != LEFT:
                more = sign * self.work(each, column)
                self.ours[self.waves[each], column] += more
                self.room[column] -= more

    def times(self) -> Array:
        """(waves, MDTs) seconds until the last of our creates there; 0 where there is none."""
        return np.where(self.ours > 0, (self.before + self.ours) * self.second_s, 0.0)

    def times_of(self, wave: int) -> Array:
        """(MDTs,) the same of one wave."""
        ours = self.ours[wave]
        return np.where(ours > 0, (self.before[wave] + ours) * self.second_s[wave], 0.0)

    def level_of(self, wave: int) -> float:
        """Seconds of one wave if what is placed could be divided at will, and all MDTs ended together."""
        return float((self.before[wave] + self.ours[wave]).sum() / (1 / self.second_s[wave]).sum())

    def time_of(self, waves: Collection[int]) -> float:
        """As `time_s`, of these alone."""
        return float(sum(self.times_of(wave).max() for wave in waves))

    def time_s(self) -> float:
        """Until the last create of the last wave."""
        return float(self.times().max(axis=1).sum())

    def clear(self) -> None:
        """Take all away."""
        for i in range(len(self.specs)):
            self.put(i, LEFT)


def build(view: SystemView, specs: Sequence[DirectorySpec], weights: Weights) -> Course:
    """Nothing is placed yet. `specs`: parents before their children; two usable MDTs at least."""
    mdts = [mdt for mdt in view.mdts if mdt.usable]
    numbers = {wave: i for i, wave in enumerate(sorted({s.wave for s in specs}))}
    waves = [numbers[s.wave] for s in specs]
    children: list[list[int]] = [[] for _ in specs]
    for i, spec in enumerate(specs):
        if spec.parent >= 0:
            children[spec.parent].append(i)
    creates = np.bincount(waves, [s.creates for s in specs], len(numbers))
    shares = creates / creates.sum() if creates.any() else np.full(len(creates), 1 / len(creates))
    theirs = np.array([m.creates_per_s * (m.create_s or 0.0) for m in mdts])
    beside = np.maximum(1.0, np.bincount(waves, minlength=len(numbers)) / len(mdts))
    return Course(
        mdts,
        specs,
        children,
        waves,
        np.array(create_times(mdts)) * (1 + theirs / beside[:, None]),
        shares[:, None] * np.array([float(m.promised_creates) for m in mdts]),
        np.zeros((len(numbers), len(mdts))),
        np.array([float(room(m, weights)) for m in mdts]),
        {mdt.index: i for i, mdt in enumerate(mdts)},
        [LEFT] * len(specs),
    )


def create_times(mdts: Sequence[Mdt]) -> list[float]:
    """Seconds of one create on each: what is usual among them over its speed beside its peers; where that is not
    known, its own mean, or the shortest one seen: who made nothing has nothing to do.
    """
    known = [m.create_s * (m.relative_speed or 1.0) for m in mdts if m.create_s]
    usual, least = (median(known), min(known)) if known else (CREATE_S, CREATE_S)
    return [usual / m.relative_speed if m.relative_speed else m.create_s or least for m in mdts]


def room(mdt: Mdt, weights: Weights) -> int:
    """Creates for which it has inodes and space, after promises and the share that is kept free; at least 0."""
    files = mdt.files_free - mdt.files_total * weights.reserve_share
    blocks = (mdt.avail_bytes - mdt.total_bytes * weights.reserve_share) / CREATE_BYTES
    return max(0, int(min(files, blocks)) - mdt.promised_creates)


def bound_s(course: Course) -> float:
    """Seconds that no assignment beats, of a course with nothing placed: the creates of each wave are divided at will,
    so that all MDTs end together, within their room; its largest directory lies whole on one; none is remote.
    """
    members: list[list[int]] = [[] for _ in course.ours]
    for spec, wave in zip(course.specs, course.waves):
        members[wave].append(spec.creates)
    total = 0.0
    for creates, second_s, before in zip(members, course.second_s, course.before):
        if max(creates):
            largest = float(((before + max(creates)) * second_s).min())
            total += max(largest, _level(float(sum(creates)), second_s, before, course.room))
    return total


def _level(creates: float, second_s: Array, before: Array, room: Array) -> float:
    """When MDTs that begin with so many have made so many more, each within its room; infinite: never."""
    if room.sum() < creates:
        return math.inf
    low, high = 0.0, float(((before + creates) * second_s).max())
    for _ in range(60):
        middle = (low + high) / 2
        made = float(np.clip(middle / second_s - before, 0, room).sum())
        low, high = (low, middle) if made >= creates else (middle, high)
    return low
