"""What nodes moved, from reports of any length to intervals of one: what came in a report is spread evenly over it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tarazu.parts.bursts.traffic.traffic import Traffic

MAX_NODES = 200_000
"""Distinct names in an interval; the bytes of further ones count for `OTHERS`."""
SLACK = 2
"""Intervals after this one may begin: clocks of senders differ a little."""
OTHERS = "(others)"
MAX_OPEN = 1024
"""Intervals that are not complete: a report's bytes of before are in the first of them."""
MAX_BYTES = 1 << 60
"""Of a node in an interval, whatever senders say."""

Moved = tuple[str, int, int]
"""A node, bytes read, written."""
Interval = dict[str, list[int]]
"""One that may still grow: node → its bytes."""


class Gathering:
    """Times are seconds since 1970."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = max(1, round(interval_s))
        self.late_bytes = 0
        """Of intervals that were closed already: they are in the first one that was not."""
        self._closed = 0
        """Nodes in the intervals that were closed last."""
        self._open: dict[int, Interval] = {}
        self._first = 0
        """Intervals before this one are closed."""

    def __len__(self) -> int:
        """Intervals that are open."""
        return len(self._open)

    @property
    def nodes(self) -> int:
        """That moved anything lately."""
        return max(map(len, self._open.values()), default=self._closed)

    def add(self, moved: Iterable[Moved], span: tuple[float, float]) -> None:
        """What was moved in this time; nothing is negative. A name may come twice."""
        pieces = self._pieces(*span)
        for name, *values in moved:
            before = (0, 0)
            for number, interval, share in pieces:
                # Rounded so that all parts together are the whole.
                read, written = values if share == 1.0 else (int(value * share) for value in values)
                bytes_ = _bytes_of(interval, name)
                bytes_[0] += read - before[0]
                bytes_[1] += written - before[1]
                if number < self._first:
                    self.late_bytes += read + written - before[0] - before[1]
                before = read, written

    def _pieces(self, begin_s: float, end_s: float) -> list[tuple[int, Interval, float]]:
        """Numbers of the intervals, where bytes of each go, and the part of all that came by its end."""
        step = self.interval_s
        last = max(self._first, math.ceil(end_s / step) - 1)
        first = max(math.floor(min(begin_s, end_s) / step), last - MAX_OPEN + 1)
        pieces = []
        for number in range(first, last + 1):
            upto = (number + 1) * step
            within = upto < end_s and number < last
            share = max(0.0, (upto - begin_s) / (end_s - begin_s)) if within else 1.0
            pieces.append((number, self._open.setdefault(max(number, self._first), {}), share))
        return pieces

    def no_later(self, now_s: float) -> None:
        """Nothing is after this: what a clock that was ahead put there was moved now."""
        last = math.floor(now_s / self.interval_s) + SLACK
        self._first = min(self._first, last)
        for number in [number for number in self._open if number > last]:
            interval = self._open.setdefault(last, {})
            for name, ahead in self._open.pop(number).items():
                bytes_ = _bytes_of(interval, name)
                bytes_[0] += ahead[0]
                bytes_[1] += ahead[1]

    def close(self, before_s: float) -> Traffic | None:
        """Rows of the intervals that ended by then, which are closed now; None where nothing was moved in them."""
        self._first = max(self._first, math.floor(before_s / self.interval_s))
        index: dict[str, int] = {}
        rows = [
            (
                number * self.interval_s,
                index.setdefault(name, len(index)),
                *(min(each, MAX_BYTES) for each in bytes_),
            )
            for number in sorted(number for number in self._open if number < self._first)
            for name, bytes_ in self._open.pop(number).items()
            if max(bytes_) > 0
        ]
        if not rows:
            return None
        self._closed = len(index)
        time_s, node, read, written = np.array(rows, np.int64).T
        return Traffic(tuple(index), float(self.interval_s), time_s, node.astype(np.int32), read, written)


def _bytes_of(interval: Interval, name: str) -> list[int]:
    bytes_ = interval.get(name)
    if bytes_ is None:
        if len(interval) >= MAX_NODES:
            name = OTHERS
        bytes_ = interval.setdefault(name, [0, 0])
    return bytes_
