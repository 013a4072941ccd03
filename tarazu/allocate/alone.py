"""What keeps two mdsds that do not hear each other from promising the same space twice.

While one of them answers and the other follows, nothing is held back. An mdsd that answers alone may at any time find
that the other did too. So from the moment it is alone (since what it promises may be unknown to the other) it counts
its own promises twice, and gives away at most half of what is free:

    new promises on an OST  <=  (available - promised - counted) / 2

`counted` are the bytes that it promised alone, those written and released meanwhile too: what this side has written is
no longer free for the other, and what the other has promised is not known here. With S promised before they parted, T
free at that moment, a and b promised by the two sides since, each side's rule says a <= T / 2, b <= T / 2 at all times,
so a + b + S never exceeds what was available. What users delete meanwhile is shared in the same way.

A count lapses `LONGEST_S` after its promise did: by then whatever the other side promised while it did not know of this
write has lapsed as well, since nobody promises for longer than `LONGEST_S` while alone. Promises from before end by
their time or when their step says so, but not by silence: their leader may talk to the other side.

Nobody knows what the other one knows when they meet again, so `told` remembers what was heard of older promises.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from tarazu.allocate.ledger import Ledger, Stripes
from tarazu.allocate.records import (
    Alone,
    Closed,
    Counted,
    Ended,
    HeardInSnapshot,
    Joined,
    Passed,
    Promised,
    Recent,
    Record,
    Revoked,
    little_endian,
    stripes_of,
)
from tarazu.model import SystemView

LONGEST_S = 7_200.0
"""Life of a promise that is made alone, at most."""
GRAIN_S = 600.0
"""Counts lapse together, that much later at most."""
DOUBT_S = 30.0
"""What was promised so long before an mdsd was killed may not have reached the other one."""


@dataclass
class _Told:
    """What was heard of a promise from before."""

    closed: dict[int, tuple[int, float]] = field(default_factory=dict)
    """File → (size in bytes, time of release)."""
    ended_s: float | None = None


class AloneCount:
    """Changed by records only, as the ledger is. Times are on the ledger's clock."""

    def __init__(self) -> None:
        self.term = 0
        """Number of the reign that these records are of; 0: there never was a second mdsd."""
        self.alone = False
        self._counted: dict[tuple[str, float], dict[int, int]] = {}
        """(file system, when it lapses) → OST → bytes."""
        self._made: dict[str, float] = {}
        """Promises made alone → when they lapse."""
        self._told: dict[str, _Told] = {}
        self._recent: dict[str, float] = {}
        """Promises made while the other one followed, of its last `DOUBT_S` → when; kept until it follows again."""

    def become(self, other: AloneCount) -> None:
        """Be what the other is, which must not be used any more."""
        self.__dict__ = other.__dict__

    def __contains__(self, id: str) -> bool:
        """Whether this promise was made alone."""
        return id in self._made

    def apply(self, record: Record, ledger: Ledger) -> None:
        """Before the ledger itself looks at the record."""
        match record:
            case Alone():
                if not self.alone:
                    self._forget()
                self.term, self.alone = record.term, True
                if record.doubted:
                    self._doubt(ledger)
            case Joined():
                self._forget()
                if self.alone:
                    self._recent = {}
                self.term, self.alone = record.term, False
            case Promised() if self.term and record.id not in ledger:
                if self.alone:
                    self._count(record.id, record.fs_name, record.expires_at_s, stripes_of(record))
                else:
                    self._note_recent(record)
            case Revoked():
                self._told.pop(record.id, None)
                self._recent.pop(record.id, None)
            case Closed() if self.alone and record.id in ledger and self.from_before(record.id):
                told = self._told.setdefault(record.id, _Told())
                told.closed |= {index: (size, record.release_at_s) for index, size in record.files}
            case Ended() if self.alone and record.id in ledger and self.from_before(record.id):
                self._told.setdefault(record.id, _Told()).ended_s = record.at_s
            case Passed():
                self._lapse(record.at_s)
            case Counted():
                osts, sizes = little_endian(array("H", record.osts)), little_endian(array("Q", record.sizes))
                self._counted[record.fs_name, record.until_s] = dict(zip(osts, sizes, strict=True))
                self._made |= record.ids
            case Recent():
                self._recent = dict(record.ids)
            case HeardInSnapshot():
                closed = {index: (size, at_s) for index, size, at_s in record.closed}
                self._told[record.id] = _Told(closed, record.ended_s)

    def from_before(self, id: str) -> bool:
        """Whether the other one may know this promise: its leader may talk to that side."""
        return id not in self or id in self._recent

    def is_recent(self, id: str) -> bool:
        """Whether this promise was made just before the two parted: the other one may have taken it back."""
        return id in self._recent

    def longest_s(self, otherwise_s: float) -> float:
        """How long a promise may live that is made now."""
        return min(LONGEST_S, otherwise_s) if self.alone else otherwise_s

    def counted(self, fs_name: str) -> dict[int, int]:
        """OST index → bytes that count a second time."""
        sums: dict[int, int] = {}
        for (of, _), by_ost in self._counted.items():
            if of == fs_name:
                for ost, size in by_ost.items():
                    sums[ost] = sums.get(ost, 0) + size
        return sums

    def share(self, view: SystemView) -> SystemView:
        """The view with no more available than this side may give away."""
        if not self.alone:
            return view
        counted = self.counted(view.fs_name)
        osts = []
        for ost in view.osts:
            ours = (ost.avail_bytes + ost.promised_bytes - counted.get(ost.index, 0)) // 2
            osts.append(msgspec.structs.replace(ost, avail_bytes=max(0, min(ost.avail_bytes, ours))))
        return msgspec.structs.replace(view, osts=tuple(osts))

    def told(self) -> Iterator[Record]:
        """What was heard while alone of promises from before, for the other one to apply at any time."""
        for id, told in self._told.items():
            by_time: dict[float, list[tuple[int, int]]] = {}
            for index, (size, release_at_s) in told.closed.items():
                by_time.setdefault(release_at_s, []).append((index, size))
            for release_at_s, files in by_time.items():
                yield Closed(id, 0.0, release_at_s, tuple(files))
            if told.ended_s is not None:
                yield Ended(id, told.ended_s)

    def state(self) -> Iterator[Record]:
        """Records that make an empty count equal to this one."""
        if self.term:
            yield Alone(self.term, 0.0) if self.alone else Joined(self.term, 0.0)
        if self._recent:
            yield Recent(dict(self._recent))
        ids = dict(self._made)
        for (fs_name, until_s), by_ost in self._counted.items():
            osts = little_endian(array("H", by_ost)).tobytes()
            sizes = little_endian(array("Q", by_ost.values())).tobytes()
            yield Counted(fs_name, until_s, osts, sizes, ids)
            ids = {}
        for id, told in self._told.items():
            closed = tuple((index, size, at_s) for index, (size, at_s) in told.closed.items())
            yield HeardInSnapshot(id, closed, told.ended_s)

    def _count(self, id: str, fs_name: str, expires_at_s: float, stripes: Stripes) -> None:
        lapses_s = math.ceil((expires_at_s + LONGEST_S) / GRAIN_S) * GRAIN_S
        self._made[id] = lapses_s
        by_ost = self._counted.setdefault((fs_name, lapses_s), {})
        for ost, size in zip(stripes.osts, stripes.sizes, strict=True):
            by_ost[ost] = by_ost.get(ost, 0) + size

    def _note_recent(self, record: Promised) -> None:
        self._recent[record.id] = record.at_s
        while (oldest := next(iter(self._recent))) and self._recent[oldest] < record.at_s - DOUBT_S:
            del self._recent[oldest]

    def _doubt(self, ledger: Ledger) -> None:
        for id in self._recent:
            if id not in self and (promise := ledger.get(id)):
                self._count(id, promise.fs_name, promise.expires_at_s, promise.stripes)

    def _lapse(self, now_s: float) -> None:
        for key in [key for key in self._counted if key[1] <= now_s]:
            del self._counted[key]
        if self._made and next(iter(self._made.values())) <= now_s:
            self._made = {id: lapses_s for id, lapses_s in self._made.items() if lapses_s > now_s}

    def _forget(self) -> None:
        self._counted, self._made, self._told = {}, {}, {}
