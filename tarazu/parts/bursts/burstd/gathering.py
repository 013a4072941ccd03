"""What nodes moved, from reports of any length to intervals of one: what came in a report is spread evenly over it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tarazu.parts.bursts.traffic.traffic import UNKNOWN, Bytes, Traffic

MAX_NODES = 200_000
"""Distinct names; the bytes of further ones count for `OTHERS`."""
SLACK = 2
"""Intervals after this one may begin: clocks of senders differ a little."""
KEPT_NAMES = MAX_NODES // 2
"""With more of them, those that have not reported for a while are dropped."""
OTHERS = "(others)"
MAX_OPEN = 1024
"""Intervals that are not complete: a report's bytes of before are in the first of them."""


class _Interval:
    """One that may still grow: (nodes,) each."""

    def __init__(self, room: int) -> None:
        self.read = np.zeros(room, np.int64)
        self.written = np.zeros(room, np.int64)
        self.network = np.full(room, UNKNOWN, np.int64)

    def grow(self, room: int) -> None:
        more = room - len(self.read)
        if more > 0:
            self.read = np.append(self.read, np.zeros(more, np.int64))
            self.written = np.append(self.written, np.zeros(more, np.int64))
            self.network = np.append(self.network, np.full(more, UNKNOWN, np.int64))


class Gathering:
    """Times are seconds since 1970."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = max(1, round(interval_s))
        self.late_bytes = 0
        """Of intervals that were closed already: they are in the first one that was not."""
        self._names: list[str] = []
        self._index: dict[str, int] = {}
        self._open: dict[int, _Interval] = {}
        self._first = 0
        """Intervals before this one are closed."""

    def __len__(self) -> int:
        """Intervals that are open."""
        return len(self._open)

    @property
    def nodes(self) -> int:
        return len(self._names)

    def add(
        self,
        names: Sequence[str],
        read: Bytes,
        written: Bytes,
        span: tuple[float, float],
        network: Bytes | None = None,
    ) -> None:
        """(names,) bytes that were moved in this time, none negative. A name may come twice."""
        if not names:
            return
        at = np.fromiter((self._at(name) for name in names), np.int64, len(names))
        begin_s, end_s = span
        step = self.interval_s
        last = max(self._first, math.ceil(end_s / step) - 1)
        first = max(math.floor(min(begin_s, end_s) / step), last - MAX_OPEN + 1)
        wanted = range(first, last + 1)
        before = [np.zeros(len(names), np.int64) for _ in range(3)]
        for number in wanted:
            upto = (number + 1) * step
            share = (upto - begin_s) / (end_s - begin_s) if upto < end_s and number < last else 1.0
            parts: list[Bytes] = []
            for i, whole in enumerate((read, written, network)):
                if whole is None:
                    continue
                # Rounded so that all parts together are the whole.
                so_far = whole if share == 1.0 else (whole * max(0.0, share)).astype(np.int64)
                parts.append(so_far - before[i])
                before[i] = so_far
            self._put(number, at, parts)

    def _put(self, number: int, at: Bytes, parts: Sequence[Bytes]) -> None:
        if number < self._first:
            self.late_bytes += int(parts[0].sum() + parts[1].sum())
            number = self._first
        interval = self._open.get(number)
        if interval is None:
            interval = self._open[number] = _Interval(self._room())
        interval.grow(self._room())
        np.add.at(interval.read, at, parts[0])
        np.add.at(interval.written, at, parts[1])
        if len(parts) > 2:
            interval.network[at] = np.maximum(interval.network[at], 0)
            np.add.at(interval.network, at, parts[2])

    def _room(self) -> int:
        return 1 << max(8, len(self._names).bit_length())

    def _at(self, name: str) -> int:
        index = self._index.get(name)
        if index is not None:
            return index
        if len(self._names) >= MAX_NODES:
            name = OTHERS
            if name in self._index:
                return self._index[name]
        self._index[name] = len(self._names)
        self._names.append(name)
        return self._index[name]

    def no_later(self, now_s: float) -> None:
        """Nothing is after this: what a clock that was ahead put there was moved now."""
        last = math.floor(now_s / self.interval_s) + SLACK
        self._first = min(self._first, last)
        for number in sorted(number for number in self._open if number > last):
            ahead = self._open.pop(number)
            interval = self._open.setdefault(last, _Interval(self._room()))
            interval.grow(self._room())
            ahead.grow(self._room())
            interval.read += ahead.read
            interval.written += ahead.written
            known = ahead.network != UNKNOWN
            interval.network[known] = np.maximum(interval.network[known], 0) + ahead.network[known]

    def close(self, before_s: float) -> Traffic | None:
        """Rows of the intervals that ended by then, which are closed now; None where nothing was moved in them."""
        until = math.floor(before_s / self.interval_s)
        self._first = max(self._first, until)
        numbers = sorted(number for number in self._open if number < self._first)
        times, nodes, reads, writes, networks = [], [], [], [], []
        for number in numbers:
            interval = self._open.pop(number)
            some = np.flatnonzero((interval.read > 0) | (interval.written > 0) | (interval.network > 0))
            times.append(np.full(len(some), number * self.interval_s, np.int64))
            nodes.append(some.astype(np.int32))
            reads.append(interval.read[some])
            writes.append(interval.written[some])
            networks.append(interval.network[some])
        if not sum(map(len, times)):
            self._forget()
            return None
        network = np.concatenate(networks)
        closed = Traffic(
            tuple(self._names),
            float(self.interval_s),
            np.concatenate(times),
            np.concatenate(nodes),
            np.concatenate(reads),
            np.concatenate(writes),
            None if (network == UNKNOWN).all() else network,
        )
        self._forget()
        return closed

    def _forget(self) -> None:
        """Of many names those of which nothing is open: whoever makes names up takes nobody's place for good."""
        if len(self._names) <= KEPT_NAMES:
            return
        used = np.zeros(len(self._names), np.bool_)
        for interval in self._open.values():
            known = (interval.read > 0) | (interval.written > 0) | (interval.network > UNKNOWN)
            used |= (
                known[: len(used)] if len(known) >= len(used) else np.pad(known, (0, len(used) - len(known)))
            )
        kept = np.flatnonzero(used)
        self._names = [self._names[at] for at in kept.tolist()]
        self._index = {name: at for at, name in enumerate(self._names)}
        room = self._room()
        for number, interval in self._open.items():
            interval.grow(len(used))
            smaller = self._open[number] = _Interval(room)
            for name in ("read", "written", "network"):
                getattr(smaller, name)[: len(kept)] = getattr(interval, name)[kept]
