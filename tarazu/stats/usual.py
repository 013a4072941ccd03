"""What is usual for each OST: how long its I/Os take, by direction, size and number in flight, over weeks.

Of each OST, and reads and writes each, there are 30 cells: six sizes of the mean I/O times five numbers in flight. A
cell holds how many intervals were seen, the mean logarithm of an I/O's time, bytes and number in flight, and how much
the times vary. It forgets with a half-life of `HALF_LIFE_H`. At most `OST_BYTES` of an OST, and `MOST_OSTS` of these.

Hours are those in which reports came: no clock is read, and while mdsd is down nothing is forgotten.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from tarazu.errors import StoreError
from tarazu.malformed import described
from tarazu.stats.evidence import Evidence
from tarazu.stats.slowness import APART, VARIATION
from tarazu.units import KIB, MIB

VERSION = 1
SIZES = (8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 2 * MIB)
"""Mean bytes of an I/O up to which each class but the last goes."""
LOADS = (1.5, 4.0, 10.0, 25.0)
"""Mean number in flight, likewise."""
CELLS = (len(SIZES) + 1) * (len(LOADS) + 1)
HALF_LIFE_H = 14 * 24.0
EPISODE_H = 1 / 6
"""Intervals of so long count for one: what follows each other is of the same jobs."""
LEAST_EPISODES = 5.0
LEAST_H = 0.5
"""A cell of fewer, and an OST that is known for less, tells nothing."""
FARTHEST = 2
"""Classes of size by which the nearest cell that tells something may differ."""
ODD = 3.0
"""Standard deviations: what is farther from the mean counts as if it were so far."""
FORGOTTEN_H = 60 * 24.0
"""An OST that was not seen for so long is forgotten."""
MOST_OSTS = 32_768
"""More are judged by their peers only."""
OST_BYTES = 2048
MOST_BYTES = 128 << 20
"""Of the file."""
LONGEST_STEP_S = 3600.0
NO_QUEUE = frozenset({"obdfilter"})
"""Sources that do not tell how many are in flight: a queue would look like slowness."""
_FIELDS = 6
"""Of a cell: weight, when (hours), mean log of seconds, bytes and number in flight, variance of the first."""
_CELL = struct.Struct(f"<B{_FIELDS}f")

Direction = tuple[str, int | str, bool]
"""(file system, OST index or server, True for writes)."""


class Usually(NamedTuple):
    """What I/Os like these usually are on this OST."""

    rates: tuple[float, float, float, float]
    """As those of `Evidence`."""
    mean_bytes: float
    episodes: float
    """That say so, of ten minutes each."""
    variance: float
    """Of the logarithm of an interval's mean time."""
    hours: float
    """For so long the OST is known, or as far back as it remembers."""


def _class_of(value: float, bounds: Sequence[float]) -> int:
    return next((n for n, bound in enumerate(bounds) if value <= bound), len(bounds))


def cell_of(e: Evidence) -> int:
    """Number of the cell, 0 to `CELLS` - 1."""
    return _class_of(e.mean_bytes, SIZES) * (len(LOADS) + 1) + _class_of(e.in_flight, LOADS)


def _nearest(cell: int) -> tuple[int, ...]:
    """All that may stand for a cell, the best first: of the same size, however deep the queue, before others."""
    size, load = divmod(cell, len(LOADS) + 1)
    others = [divmod(c, len(LOADS) + 1) for c in range(CELLS)]
    near = sorted((abs(s - size), abs(n - load), s, n) for s, n in others if abs(s - size) <= FARTHEST)
    return tuple(s * (len(LOADS) + 1) + n for _, _, s, n in near)


_NEAREST = tuple(_nearest(cell) for cell in range(CELLS))


def _informative(ios: float) -> float:
    """Weight of an interval of so many I/Os: 1 for many."""
    return APART**2 / (APART**2 + math.log1p(VARIATION**2 / max(1.0, ios)))


class _Side:
    """Reads or writes of one OST."""

    __slots__ = ("cells", "source")

    def __init__(self, source: str, begun_h: float, seen_h: float) -> None:
        self.source = source
        self.cells = array("f", bytes(4 * _FIELDS * CELLS))
        self.cells.extend((begun_h, seen_h))

    @property
    def begun_h(self) -> float:
        return self.cells[-2]

    @property
    def seen_h(self) -> float:
        return self.cells[-1]

    def take(self, e: Evidence, hours: float, weight: float) -> None:
        cells, at = self.cells, _FIELDS * cell_of(e)
        cells[-1] = hours
        known = cells[at] * 0.5 ** (max(0.0, hours - cells[at + 1]) / HALF_LIFE_H)
        apart = (
            min(1.0, max(hours - cells[at + 1], (e.at_s - e.begin_s) / 3600) / EPISODE_H) if known else 1.0
        )
        whole = known + weight * apart * _informative(e.ios)
        share = 1.0 - known / whole
        off = math.log(e.seconds / e.ios) - cells[at + 2]
        if known >= LEAST_EPISODES:
            most = ODD * math.sqrt(max(APART**2, cells[at + 5]))
            off = max(-most, min(most, off))
        cells[at], cells[at + 1] = whole, hours
        cells[at + 2] += share * off
        cells[at + 3] += share * (math.log(e.mean_bytes) - cells[at + 3])
        cells[at + 4] += share * (math.log(e.in_flight) - cells[at + 4])
        cells[at + 5] = (1.0 - share) * (cells[at + 5] + share * off * off)

    def expected(self, e: Evidence, hours: float) -> Usually | None:
        known_h = hours - self.begun_h
        if known_h < LEAST_H or self.source != e.source:
            return None
        cells = self.cells
        for cell in _NEAREST[cell_of(e)]:
            at = _FIELDS * cell
            if cells[at] >= LEAST_EPISODES:
                of_bytes = math.exp(cells[at + 3] - cells[at + 2])
                of_ios, flight = math.exp(-cells[at + 2]), math.exp(cells[at + 4])
                return Usually(
                    (of_bytes, of_ios, of_bytes * flight, of_ios * flight),
                    math.exp(cells[at + 3]),
                    cells[at],
                    cells[at + 5],
                    min(known_h, HALF_LIFE_H),
                )
        return None

    def packed(self) -> bytes:
        filled = (c for c in range(CELLS) if self.cells[_FIELDS * c])
        return b"".join(_CELL.pack(c, *self.cells[_FIELDS * c : _FIELDS * (c + 1)]) for c in filled)

    def unpack(self, data: bytes) -> None:
        if len(data) % _CELL.size or len(data) > CELLS * _CELL.size:
            raise ValueError(f"{len(data)} bytes for cells of {_CELL.size}")
        for cell, *values in _CELL.iter_unpack(data):
            weight, at_h, seconds, size, flight, variance = values
            logs = all(abs(log) < 60 for log in (seconds, size, flight))  # NaN is none
            if not (cell < CELLS and 0 < weight < 1e9 and 0 <= at_h < 1e9 and 0 <= variance < 1e4 and logs):
                raise ValueError(f"impossible values in cell {cell}")
            self.cells[_FIELDS * cell : _FIELDS * (cell + 1)] = array("f", values)


class _SideFile(msgspec.Struct, array_like=True):
    source: str
    begun_h: float
    seen_h: float
    cells: bytes


class _OstFile(msgspec.Struct, array_like=True):
    of: int | str
    """OST index, or server's name for the requests of all its OSTs."""
    reads: _SideFile | None
    writes: _SideFile | None


class _File(msgspec.Struct):
    version: int
    hours: float
    file_systems: dict[str, list[_OstFile]]


class _Version(msgspec.Struct):
    version: int


class Usual:
    """Of all OSTs of all file systems."""

    def __init__(self) -> None:
        self.hours = 0.0
        """In which reports came."""
        self._last_s: float | None = None
        self._sides: dict[Direction, _Side] = {}

    def __len__(self) -> int:
        """Directions of OSTs of which something is known."""
        return len(self._sides)

    def pass_time(self, received_s: float) -> None:
        """A report came; `received_s` on any clock that is not set."""
        if self._last_s is not None:
            self.hours += min(max(0.0, received_s - self._last_s), LONGEST_STEP_S) / 3600
        self._last_s = received_s

    def expected(self, key: Direction, e: Evidence) -> Usually | None:
        """None where too little is known."""
        side = self._sides.get(key)
        return side.expected(e, self.hours) if side else None

    def learn(self, key: Direction, e: Evidence, weight: float = 1.0) -> None:
        """Take in one interval; `weight` 0-1, little for one that may be of a slow disk."""
        if e.source in NO_QUEUE:
            return
        side = self._sides.get(key)
        if side is None or side.source != e.source:
            if side is None and len(self._sides) >= 2 * MOST_OSTS:
                return
            side = self._sides[key] = _Side(e.source, self.hours, self.hours)
        side.take(e, self.hours, weight)

    def forget(self) -> None:
        """Forget what was not seen for so long."""
        self._sides = {k: s for k, s in self._sides.items() if self.hours - s.seen_h <= FORGOTTEN_H}

    def dump(self) -> bytes:
        """All of it, for a file; in any thread."""
        return msgspec.msgpack.encode(_File(VERSION, self.hours, self._files()))

    def _files(self) -> dict[str, list[_OstFile]]:
        by_fs: dict[str, dict[int | str, _OstFile]] = {}
        for (fs_name, name, writes), side in list(self._sides.items()):
            of = by_fs.setdefault(fs_name, {}).setdefault(name, _OstFile(name, None, None))
            kept = _SideFile(side.source, side.begun_h, side.seen_h, side.packed())
            if writes:
                of.writes = kept
            else:
                of.reads = kept
        return {fs_name: list(osts.values()) for fs_name, osts in by_fs.items()}

    def load(self, data: bytes, where: str) -> None:
        """What `dump` made. Raises StoreError, and changes nothing, for anything else; `where` names it."""
        try:
            if (version := msgspec.msgpack.decode(data, type=_Version).version) != VERSION:
                raise ValueError(f"version {version}")
            file = msgspec.msgpack.decode(data, type=_File)
            if not 0 <= file.hours < 1e9:
                raise ValueError(f"{file.hours} hours")
            sides = dict(islice(_sides(file), 2 * MOST_OSTS))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise StoreError(where, f"usual times of I/Os, version {VERSION}", str(error)) from None
        self._sides, self.hours = sides, file.hours


def _sides(file: _File) -> Iterator[tuple[Direction, _Side]]:
    for fs_name, osts in file.file_systems.items():
        for ost in osts:
            for writes, kept in ((False, ost.reads), (True, ost.writes)):
                if kept is None:
                    continue
                named = isinstance(ost.of, str) or 0 <= ost.of < 2**16
                if not (named and 0 <= kept.begun_h <= kept.seen_h <= file.hours + 1):
                    raise ValueError(f"impossible values of {fs_name}'s OST {ost.of}")
                side = _Side(kept.source, kept.begun_h, kept.seen_h)
                side.unpack(kept.cells)
                yield (fs_name, ost.of, writes), side


described(_File, _Version)
