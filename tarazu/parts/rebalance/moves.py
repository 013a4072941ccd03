"""One dataset on its OSTs, and the next few files whose moving makes the highest of them lower.

The level of an OST is what it holds over its rate: bytes of the dataset over bytes/s, so seconds; or used over total
space, so fill. What is waited for is the highest level. Where several OSTs are that high it falls only when all of
them have given something away, so what is weighed is a step: the moves until it has fallen by a part.

A file of which one object alone is too large is only reported, with a stripe count that helps: its owner decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu.allocate.problem import Array
from tarazu.lustre import LOV_MAX_STRIPE_COUNT
from tarazu.parts.rebalance.datasets import Dataset
from tarazu.parts.rebalance.files import FileObjects, Files
from tarazu.parts.rebalance.targets import Targets

FALL = 0.02
"""A step ends when the highest level has fallen by this share."""
TRIES = 24
"""Files of one OST that are looked at for one move."""
LEAST = 1e-9


class Move(NamedTuple):
    """One file, to be written anew with other OSTs under the same layout."""

    file: int
    before: tuple[int, ...]
    """Places in `Targets`, object after object."""
    after: tuple[int, ...]
    size_bytes: int
    """What is copied: all of the file, also objects that stay."""


class MoveStep(msgspec.Struct, frozen=True):
    """Moves that belong together: the level falls when all are done."""

    moves: tuple[Move, ...]
    size_bytes: int
    before: float
    """The highest level."""
    after: float

    @property
    def gain(self) -> float:
        return self.before - self.after


class Load:
    """One dataset on the OSTs."""

    def __init__(
        self, targets: Targets, objects: FileObjects, moved: Array, rate: Array, base: Array
    ) -> None:
        """objects: of the files that may move, `ost` as places; moved: bytes of the dataset in each object, per
        moving of it; base: what else the level is made of.
        """
        self.targets, self.rate = targets, rate
        self._file, self._place = objects.file, objects.ost
        self._stored, self._moved = objects.stored.astype(np.int64), moved.astype(float)
        self.held = base + np.bincount(objects.ost, moved, len(rate))
        self._files, self._first = np.unique(objects.file, return_index=True)
        self._end = np.append(self._first[1:], len(objects.file))
        self._at = {int(f): n for n, f in enumerate(self._files)}
        self._done: set[int] = set()
        self._queues: dict[int, tuple[Array, Array, Array]] = {}
        """Place → files with an object there, the bytes of that object, its share of the file in sixteenths; both
        negative, so that they ascend."""
        open_ = targets.room > 0
        self.low = float(self.held.sum()) / max(LEAST, float(rate[open_ | (self.held > 0)].sum()))
        """All OSTs would be at this level if bytes could be dealt at will."""

    @property
    def highest(self) -> float:
        return float((self.held / self.rate).max(initial=0.0))

    def step(self, room: Array) -> MoveStep | None:
        """The next step within `room` (bytes that each OST may still take), without taking it."""
        held, room = self.held.copy(), room.copy()
        level = held / self.rate
        start = float(level.max(initial=0.0))
        done: set[int] = set()
        moves: list[Move] = []
        while level.max() > start * (1 - FALL):
            move = self._next(int(level.argmax()), held, level, room, done, start)
            if move is None:
                break
            moves.append(move)
            done.add(move.file)
            self._apply(move, held, room)
            touched = [*move.before, *move.after]
            level[touched] = held[touched] / self.rate[touched]
        after = float(level.max(initial=0.0))
        if not moves or after > start * (1 - 1e-3):
            return None
        return MoveStep(tuple(moves), sum(m.size_bytes for m in moves), start, after)

    def take(self, step: MoveStep, room: Array) -> None:
        """Do what the step says; `room` shrinks where objects come, and does not grow where they were."""
        for move in step.moves:
            self._apply(move, self.held, room)
            self._done.add(move.file)

    def fits(self, step: MoveStep, room: Array) -> bool:
        """Whether there still is room for a step."""
        left = room.copy()
        for move in step.moves:
            self._apply(move, np.zeros(len(left)), left)
        return bool((left >= 0).all())

    def _apply(self, move: Move, held: Array, room: Array) -> None:
        span = self._span(move.file)
        for at, before, after in zip(range(*span), move.before, move.after, strict=True):
            if before != after:
                held[before] -= self._moved[at]
                held[after] += self._moved[at]
                room[after] -= self._stored[at]

    def _span(self, file: int) -> tuple[int, int]:
        n = self._at[file]
        return int(self._first[n]), int(self._end[n])

    def _next(
        self, hot: int, held: Array, level: Array, room: Array, done: set[int], start: float
    ) -> Move | None:
        """The file to take from the highest OST: of those with most of themselves there the largest that does not
        leave the OST below the others, else the smallest.
        """
        excess = held[hot] - self.rate[hot] * self.low
        for file in self._candidates(hot, excess, done):
            move = self._moved_to(file, hot, held, level, room, start)
            if move is not None:
                return move
        return None

    def _candidates(self, hot: int, excess: float, done: set[int]) -> Iterator[int]:
        if hot not in self._queues:
            here = np.flatnonzero(self._place == hot)
            number = np.searchsorted(self._files, self._file[here])
            whole = np.add.reduceat(self._stored, self._first)[number] if len(here) else here
            share = np.round(16 * self._stored[here] / np.maximum(1, whole))
            order = np.lexsort((-self._moved[here], -share))
            self._queues[hot] = (self._file[here][order], -self._moved[here][order], -share[order])
        files, moved, share = self._queues[hot]
        tried = 0
        at_kind = 0
        while at_kind < len(share):
            begin = at_kind
            at_kind = end = int(np.searchsorted(share, share[begin], "right"))
            # Within a kind the largest come first: those that fit, then, from the smallest on, those that do not.
            fits = begin + int(np.searchsorted(moved[begin:end], -excess))
            for at in (*range(fits, end), *range(fits - 1, begin - 1, -1)):
                file = int(files[at])
                if file in done or file in self._done:
                    continue
                if moved[at] >= 0 or tried >= TRIES:
                    break
                tried += 1
                yield file

    def _moved_to(
        self, file: int, hot: int, held: Array, level: Array, room: Array, start: float
    ) -> Move | None:
        first, end = self._span(file)
        before = self._place[first:end]
        kind, avail = self.targets.kind, self.targets.avail
        after = before.copy()
        taken = np.zeros(len(level), bool)
        taken[before] = True
        now = level.copy()
        size = int(self._stored[first:end].sum())
        for at in (np.argsort(-self._moved[first:end], kind="stable")).tolist():
            place, moved, stored = int(before[at]), self._moved[first + at], self._stored[first + at]
            if level[place] <= self.low * (1 + FALL) and place != hot:
                continue
            would = (held + moved) / self.rate
            can = (room >= stored) & ~taken & (kind == kind[place])
            would = np.where(can, np.maximum(would, now), np.inf)
            best = int(would.argmin())
            if would[best] < min(start, level[place]) * (1 - 1e-3):
                after[at] = best
                taken[best] = True
                now[best] = would[best]
            elif place == hot:
                return None
        stays = (after == before) & (avail[before] < self._stored[first:end])
        if stays.any():
            return None  # the copy needs its space beside the old objects for a while
        return Move(file, tuple(before.tolist()), tuple(after.tolist()), size)


TOO_LARGE = 2.0
"""Times what all OSTs would need together for the data set."""
MOST = 10
"""Files that are named, of each data set."""
MOST_STRIPES = 160
"""As Lustre gives without large attributes."""


class Wider(msgspec.Struct, frozen=True):
    """One file, and what more stripes would make of its largest object, on OSTs of the middle speed."""

    file: int
    stripe_count: int
    before_s: float
    after_s: float


def wider(files: Files, targets: Targets, dataset: Dataset, part: FileObjects, moved: Array) -> list[Wider]:
    """Plain files of which one object alone is too large, slowest first: no other OST helps, more stripes would.

    part, moved: as in `Load`.
    """
    if not dataset.per_day or not len(moved):
        return []
    speed = float(np.median(targets.speed))
    even_s = float(moved.sum() / targets.speed.sum())
    by_file: dict[int, Wider] = {}
    usable = targets.room > 0
    for at in np.argsort(-moved, kind="stable").tolist():
        file, before_s = int(part.file[at]), float(moved[at] / speed)
        if before_s <= TOO_LARGE * even_s or len(by_file) >= MOST:
            break
        layout = files.shape(file).layout
        if file in by_file or len(layout.components) > 1:
            continue
        osts = int((usable & (targets.kind == targets.kind[part.ost[at]])).sum())
        count = layout.components[0].stripe_count
        wanted = ceil(count * before_s / even_s)
        most = min(osts, MOST_STRIPES, LOV_MAX_STRIPE_COUNT)
        chosen = min(most, 1 << max(0, wanted - 1).bit_length())
        if chosen > count:
            by_file[file] = Wider(file, chosen, before_s, before_s * count / chosen)
    return list(by_file.values())
