"""Whether something before a server's disks is slow: its network, an LNet router, its threads.

`obdfilter.*.stats` (2.15 on) has the time of each request without the wait for the disk. It is put together for all
OSTs of a server and compared with what is usual for that server (`tarazu.stats.own`), while its disks are as usual:
what makes these slow makes requests wait too. In flight are the I/Os on its disks; a server that moves much more than
it usually does is no measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median_low
from typing import NamedTuple

from tarazu.stats.counters import were_reset
from tarazu.stats.evidence import MIN_REQUESTS, Evidence
from tarazu.stats.own import AS_USUAL, Class, OwnHistory, Share
from tarazu.stats.usual import Usual
from tarazu.wire.reports import OstReport

SOURCE = "requests"
BUSY_TIMES, REMEMBERED = 2.0, 0.02
"""A server that moves so much more than it usually does is no measure: its requests may wait for each other. Weight of
the newest interval in what is usual."""
NOTICED = 0.8
"""Share of its speed that a slow way to a server leaves an OST, above which nobody need hear of it."""
MAX_SILENCE_S = 3600.0

_Counts = tuple[int, int, int]
"""Requests, bytes, microseconds."""


class Disk(NamedTuple):
    """What an OST's disk did in the interval that ended last."""

    at_s: float
    seconds: float
    in_flight: float
    slowness: float
    """Logarithm of how many times slower it was than usual, 0 where that is not known."""
    s_per_byte: float


class SlowLink(NamedTuple):
    """The way to one server."""

    times: float
    """Longer than usual."""
    usual_s_per_byte: float
    hours: float
    """Of its history."""
    score: float


class _Seen(NamedTuple):
    at_s: float
    start_s: float
    counts: tuple[_Counts, _Counts]
    """Of reads, and of writes."""


class Links:
    """To the servers of one file system."""

    def __init__(self, fs_name: str, usual: Usual, share: Share) -> None:
        self._own = OwnHistory(fs_name, usual, share)
        self._last: dict[int, _Seen] = {}
        self._unread: dict[int, tuple[_Seen, _Seen]] = {}
        self._log_bytes_per_s: dict[str, float] = {}
        """Server → mean logarithm of what it moves."""
        self.noticed: set[int] = set()
        """OSTs that were said to be slow for it: they stay so until it is well, and do not come and go with each
        interval's I/Os."""

    def take(self, report: OstReport, received_s: float) -> None:
        """One target's counters."""
        if any(
            ios and not size
            for ios, size in (
                (report.read_samples, report.read_bytes),
                (report.write_samples, report.write_bytes),
            )
        ):
            self.forget(report.index)  # the bytes overflowed
            return
        reads = report.read_samples, report.read_bytes, report.read_usecs
        writes = report.write_samples, report.write_bytes, report.write_usecs
        now = _Seen(received_s, report.counters_start_s, (reads, writes))
        before = self._last.get(report.index)
        self._last[report.index] = now
        if before and 0 < now.at_s - before.at_s <= MAX_SILENCE_S and not _reset(now, before):
            self._unread[report.index] = before, now

    def forget(self, index: int) -> None:
        """The target's next counters are another server's."""
        self._last.pop(index, None)
        self._unread.pop(index, None)

    def judge(self, heard_s: float, servers: Mapping[int, str], disks: Mapping[int, Disk]) -> None:
        """What came since the last time; `heard_s`: as of `OwnHistory.settle`; `disks`: OST index → what it did."""
        of_server: dict[tuple[str, float], list[int]] = {}
        for index, (_, seen) in self._unread.items():
            if index in servers:
                of_server.setdefault((servers[index], seen.at_s), []).append(index)
        for (server, at_s), osts in of_server.items():
            spans = [self._unread[i] for i in osts]
            here = [d for i in osts if (d := disks.get(i)) and d.at_s == at_s]
            begin_s = min(before.at_s for before, _ in spans)
            grown = [_sum(spans, writes) for writes in (0, 1)]
            moved = sum(size for _, size, _ in grown)
            if moved <= 0 or (here and median_low([d.slowness for d in here]) > AS_USUAL):
                continue
            rate = math.log(moved / (at_s - begin_s))
            usual = self._log_bytes_per_s.get(server, rate)
            self._log_bytes_per_s[server] = usual + REMEMBERED * (rate - usual)
            if rate - usual > math.log(BUSY_TIMES):
                continue
            seconds = sum(d.seconds for d in here)
            flight = sum(d.in_flight * d.seconds for d in here) / seconds if seconds else 1.0
            for writes, (ios, size, usecs) in zip((False, True), grown):
                if ios >= MIN_REQUESTS and size > 0 and usecs > 0:
                    e = Evidence(begin_s, at_s, SOURCE, ios, size, usecs / 1e6, max(1.0, flight))
                    of_class: Class = (writes, SOURCE, None)
                    self._own.show((server, writes), e, of_class, suspect=False)
        self._unread.clear()
        self._own.settle(heard_s, {})

    def slow(self) -> dict[str, SlowLink]:
        """Servers to which the way is slow, by the worse direction."""
        found: dict[str, SlowLink] = {}
        for server, writes in self._own.slow():
            if known := self._own.of((server, writes)):
                state, usually = known
                link = SlowLink(1 / state.relative, 1 / usually.rates[0], usually.hours, state.proven)
                name = str(server)
                found[name] = max(found.get(name, link), link)
        return found


def _reset(now: _Seen, before: _Seen) -> bool:
    new, old = (tuple(n for of in seen.counts for n in of) for seen in (now, before))
    return were_reset(now.start_s, before.start_s, new, old)


def _sum(spans: list[tuple[_Seen, _Seen]], writes: int) -> _Counts:
    totals = [0, 0, 0]
    for before, now in spans:
        old = before.counts[writes]
        grown = [n - o for n, o in zip(now.counts[writes], old)]
        if grown[2] > 0 and bool(old[0]) == bool(old[2]):  # 2.12 has no times, nor has a sum that overflowed
            totals = [t + g for t, g in zip(totals, grown)]
    return totals[0], totals[1], totals[2]
