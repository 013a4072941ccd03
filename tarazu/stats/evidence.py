"""What one interval's I/Os tell of an OST: differences of its counters. One disk I/O is something."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tarazu.stats.counters import were_reset
from tarazu.stats.service import DISK_SOURCES, of_requests
from tarazu.units import KIB, MIB
from tarazu.wire.reports import IoCounters, OstReport

MIN_REQUESTS = 16
MIN_REQUEST_BYTES = 16 * MIB
MIN_MEAN_REQUEST_BYTES = 128 * KIB
"""For sources that count requests: fewer, or smaller ones, whose time is not that of data, say nothing."""


class Evidence(NamedTuple):
    begin_s: float
    at_s: float
    source: str
    ios: int
    bytes: int
    seconds: float
    """Sum over the I/Os."""
    in_flight: float
    """Of both directions, as if all were in flight in the same time: a queue explains as much as it can."""
    alone: float = 0.0
    """Of this direction; 0: `in_flight` is all that is known."""
    others_s: float = 0.0
    """Sum over the I/Os of the other direction."""

    @property
    def at_any_time(self) -> Evidence:
        """The same, but with as many of the other direction in flight as there were over the whole interval."""
        if not self.alone or self.at_s <= self.begin_s:
            return self
        most = self.alone * self.others_s / self.seconds
        return self._replace(in_flight=self.alone + min(most, self.others_s / (self.at_s - self.begin_s)))

    @property
    def rates(self) -> tuple[float, ...]:
        """The four measures: bytes and I/Os, each per second of I/O time and times the number in flight."""
        of_bytes, of_ios = self.bytes / self.seconds, self.ios / self.seconds
        return of_bytes, of_ios, of_bytes * self.in_flight, of_ios * self.in_flight

    @property
    def mean_bytes(self) -> float:
        return self.bytes / self.ios


class Seen(NamedTuple):
    report: OstReport
    io: IoCounters
    at_s: float


def io_of(report: OstReport, writes: bool) -> IoCounters | None:
    """The report's counters of one direction; of an ossd that sends none, `obdfilter`'s writes. None for none."""
    if report.reads or report.writes:
        return report.writes if writes else report.reads
    return of_requests(report)[writes]


def judge(now: Seen, base: Seen) -> tuple[bool, Evidence | None]:
    """(whether `now` is the new base, what the I/Os since `base` tell)."""
    since = since_base(now.io, base.io)
    if since.source in DISK_SOURCES:
        enough = since.ios > 0
    else:
        if since.ios and since.bytes / since.ios < MIN_MEAN_REQUEST_BYTES:
            return True, None
        enough = since.ios >= MIN_REQUESTS and since.bytes >= MIN_REQUEST_BYTES
    if not enough:
        return False, None
    if since.usecs <= 0 or since.bytes <= 0:
        return True, None
    seconds, (alone, others) = since.usecs / 1e6, flight_alone(since, now, base)
    # In the same time, numbers in flight are as the sums of the times (Little's law).
    in_flight = alone * (1 + others / since.usecs)
    counts = since.ios, since.bytes, seconds
    return True, Evidence(base.at_s, now.at_s, since.source, *counts, in_flight, alone, others / 1e6)


def since_base(now: IoCounters, base: IoCounters) -> IoCounters:
    """The difference; after a reset, all that the new counters hold. Those of a device hold what others did there since
    the node's boot: then nothing.
    """
    new, old = msgspec.structs.astuple(now)[1:6], msgspec.structs.astuple(base)[1:6]
    if were_reset(now.start_s, base.start_s, new, old):
        return now if now.source != "diskstats" else IoCounters(now.source)
    return IoCounters(now.source, *(n - o for n, o in zip(new, old)))


def flight_alone(since: IoCounters, now: Seen, base: Seen) -> tuple[float, int]:
    """(mean number of this OST's I/Os of this direction in flight, time of those of the other in microseconds); where
    the source counts the whole disk's, those too, and 0.
    """
    if not since.flight_samples:
        return 1.0, 0
    mean = since.flight_sum / since.flight_samples
    if since.source == "brw_stats":
        # Counted per block I/O, of which one (bulk) I/O may have several.
        mean = max(1.0, mean * min(1.0, since.ios / since.flight_samples))
        other, before = _other(now), _other(base)
        same = other and before and other.source == before.source == since.source
        return mean, since_base(other, before).usecs if same and other and before else 0
    if since.source == "diskstats":
        # Of what the device did, only the OST's own.
        of_device = sum(_grown(a.bytes, b.bytes) for a, b in zip(_both(now), _both(base)) if a and b)
        of_ost = _grown(now.report.write_bytes, base.report.write_bytes)
        of_ost += _grown(now.report.read_bytes, base.report.read_bytes)
        return max(1e-6, mean * min(1.0, of_ost / of_device)) if of_device and of_ost else mean, 0
    return max(1.0, mean), 0


def _both(seen: Seen) -> tuple[IoCounters | None, IoCounters | None]:
    return seen.report.reads, seen.report.writes


def _other(seen: Seen) -> IoCounters | None:
    """The counters of the other direction."""
    return seen.report.reads if seen.io is seen.report.writes else seen.report.writes


def _grown(now: int, base: int) -> int:
    return max(0, now - base)
