"""Many disks at once, I/O by I/O, in arrays: what their servers' counters say at each report.

Each disk serves one I/O after another. While it is slow, or stands still, its own clock goes slower (`Pace`): what an
I/O takes follows from when it is served, not from when it came. `brw_stats` counts an I/O when it has ended, in
classes of time that double; `obdfilter` counts a request when it begins, with the time of network and threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarazu.units import TIB
from tarazu.wire.reports import IoCounters, OstReport

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

APART_S = 2.0**22
"""Between the clocks of two OSTs in one array: longer than all that is played at once."""


class Ios(NamedTuple):
    """I/Os of all OSTs, in any order."""

    ost: Ints
    at_s: Floats
    """When they are wanted."""
    bytes: Floats
    writes: Bools

    def __add__(self, other: object) -> Ios:
        assert isinstance(other, Ios)
        return Ios(*(np.concatenate(pair) for pair in zip(self, other)))


NONE = Ios(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0, bool))


class Pace(NamedTuple):
    """Of one disk: from `at_s[n]` on it goes at `speed[n]` of its usual speed. The first is at 0, the last above 0."""

    at_s: Floats
    speed: Floats

    def _knots(self) -> tuple[Floats, Floats]:
        ends = np.append(self.at_s, APART_S)
        return ends, np.concatenate([[0.0], np.cumsum(np.diff(ends) * self.speed)])

    def own(self, t: Floats) -> Floats:
        """The disk's own clock at `t`."""
        return np.interp(t, *self._knots())

    def real(self, own: Floats) -> Floats:
        """When its own clock shows this; of a standstill its end."""
        ends, clock = self._knots()
        at = np.clip(np.searchsorted(clock, own, side="left") - 1, 0, len(self.speed) - 1)
        speed = np.where(self.speed[at] > 0, self.speed[at], 1.0)
        return np.asarray(ends[at] + (own - clock[at]) / speed)


class Played(NamedTuple):
    """Of one direction, ordered by OST and time; times are apart by `APART_S` for each OST."""

    begun: Floats
    ended: Floats
    sums: Ints
    """(I/Os + 1, 4): of I/Os, bytes, microseconds by `brw_stats`, in flight, up to each, in order of their end."""
    requests: Ints
    """(I/Os + 1, 3): of requests, bytes, microseconds by `obdfilter`, in order of their begin."""


def play(
    ios: Ios, service_s: Floats, request_s: Floats, end_s: float, paces: Mapping[int, Pace], depth: Ints
) -> tuple[Played, Played]:
    """(reads, writes) of what has begun until `end_s`.

    `service_s`: of each I/O alone, at the usual pace; `request_s`: of its request, the disk left out; `depth`: OST →
    the most that are in flight at once.
    """
    order = np.lexsort((ios.at_s, ios.ost))
    ost, at_s, size, writes = (of[order] for of in ios)
    service_s, request_s = service_s[order], request_s[order]
    first = np.searchsorted(ost, np.arange(len(depth) + 1))
    own = at_s.copy()
    for index, pace in paces.items():
        here = slice(first[index], first[index + 1])
        own[here] = pace.own(at_s[here])
    served = np.cumsum(service_s)
    # Lindley: each is done a service after it came or the one before was done.
    lag = ost * APART_S + own - (served - service_s)
    done = np.maximum.accumulate(lag) + served - ost * APART_S
    for index, pace in paces.items():
        here = slice(first[index], first[index + 1])
        done[here] = pace.real(done[here])
    # The n-th in flight begins when the one `depth` before it is done.
    before = np.arange(len(ost)) - depth[ost]
    waits = before >= first[ost]
    begun = np.maximum(at_s, np.where(waits, done[np.maximum(before, 0)], 0.0))
    taken_ms = np.ceil(np.maximum(done - begun, 0.0) * 1e3)
    label = 2.0 ** np.ceil(np.log2(np.maximum(1.0, taken_ms)))
    usecs = np.where(label > 1, 750 * label, 1000)
    columns = []
    for direction in (False, True):
        mine = (writes == direction) & (begun < end_s)
        base = ost[mine] * APART_S
        b, d = base + begun[mine], base + done[mine]
        in_flight = np.arange(1, len(b) + 1) - np.searchsorted(d, b, side="right")
        columns.append(
            Played(
                b,
                d,
                _sums(np.ones(len(b)), size[mine], usecs[mine], in_flight),
                _sums(np.ones(len(b)), size[mine], request_s[mine] * 1e6),
            )
        )
    return columns[0], columns[1]


def _sums(*columns: Floats | Ints) -> Ints:
    of = np.stack(columns, axis=1).astype(np.int64)
    return np.concatenate([np.zeros((1, len(columns)), np.int64), np.cumsum(of, axis=0)])


class Counters:
    """The counters of all OSTs, which go on from one stretch of time to the next."""

    def __init__(self, osts: int, rotational: Bools) -> None:
        self.osts = osts
        self._flash = (~rotational).tolist()
        self._ended = np.zeros((2, osts, 4), np.int64)
        self._begun = np.zeros((2, osts, 3), np.int64)

    def reports(self, played: tuple[Played, Played], at_s: Floats) -> Iterator[list[OstReport]]:
        """Of each column of `at_s` (OST, report) all OSTs' reports; times are of the stretch that was played."""
        ended, begun = [], []
        base = np.arange(self.osts) * APART_S
        moments = base[:, None] + at_s
        for n, of in enumerate(played):
            first = np.searchsorted(of.begun, base)
            last = np.append(first[1:], len(of.begun))
            upto = np.searchsorted(of.ended, moments, side="right")
            since = np.searchsorted(of.begun, moments, side="right")
            ended.append(self._ended[n][:, None] + of.sums[upto] - of.sums[first][:, None])
            begun.append(self._begun[n][:, None] + of.requests[since] - of.requests[first][:, None])
            self._ended[n] += of.sums[last] - of.sums[first]
            self._begun[n] += of.requests[last] - of.requests[first]
        waiting_s, waiting = _waiting(played, moments)
        for k in range(at_s.shape[1]):
            rows = zip(
                ended[0][:, k].tolist(),
                ended[1][:, k].tolist(),
                begun[0][:, k].tolist(),
                begun[1][:, k].tolist(),
                waiting_s[:, k].tolist(),
                waiting[:, k].tolist(),
                self._flash,
            )
            yield [_report(index, *row) for index, row in enumerate(rows)]


def _waiting(played: tuple[Played, Played], moments: Floats) -> tuple[Floats, Ints]:
    """(For how long I/Os are in flight of which none has ended since the report before, how many)."""
    in_flight = np.zeros(moments.shape, np.int64)
    last = np.full(moments.shape, -np.inf)
    oldest = np.full(moments.shape, np.inf)
    base = np.floor(moments / APART_S) * APART_S
    for of in played:
        if not len(of.begun):
            continue
        upto = np.searchsorted(of.ended, moments, side="right")
        since = np.searchsorted(of.begun, moments, side="right")
        in_flight += since - upto
        before = of.ended[np.maximum(upto - 1, 0)]
        last = np.maximum(last, np.where((upto > 0) & (before >= base), before, base))
        next_begun = of.begun[np.minimum(upto, len(of.begun) - 1)]
        oldest = np.minimum(oldest, np.where(since > upto, next_begun, np.inf))
    step = np.diff(moments, axis=1, prepend=moments[:, :1])
    seconds = moments - np.maximum(last, oldest)
    # The device's own look needs two reports between which nothing has ended.
    waits = (in_flight > 0) & (seconds >= step) & (step > 0)
    return np.where(waits, seconds, 0.0), np.where(waits, in_flight, 0)


def _report(
    index: int,
    read: list[int],
    written: list[int],
    reads: list[int],
    writes: list[int],
    waiting_s: float,
    waiting_ios: int,
    flash: bool,
) -> OstReport:
    return OstReport(
        "lustre",
        index,
        TIB,
        TIB // 2,
        TIB // 2,
        write_bytes=writes[1],
        write_samples=writes[0],
        write_usecs=writes[2],
        read_bytes=reads[1],
        read_samples=reads[0],
        read_usecs=reads[2],
        reads=IoCounters("brw_stats", read[0], read[1], read[2], read[3], read[0]),
        writes=IoCounters("brw_stats", written[0], written[1], written[2], written[3], written[0]),
        nonrotational=flash,
        waiting_s=waiting_s,
        waiting_ios=waiting_ios,
    )
