"""What one interval's I/Os tell of an OST: how many ended, of how many bytes, how long they took, how many were in
flight. Differences of two reports' counters; one disk I/O is something.

OSTs on one disk (its partitions, files, logical volumes) are as fast as the disk, also those without I/O: their I/Os
are put together, so that more are seen, sooner, and what one OST shows counts for its neighbours. One that is much
slower than another on the disk in the same time has a cause of its own (its volume is held, say), and speaks for
itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from tarazu.stats.counters import were_reset
from tarazu.stats.service import DISK_SOURCES, REQUEST_SOURCES, of_requests
from tarazu.units import KIB, MIB
from tarazu.wire.reports import IoCounters, OstReport

MIN_REQUESTS, MIN_REQUEST_BYTES = 16, 16 * MIB
"""Of a source that counts requests, whose times vary more than those of disks: fewer are gathered over intervals, until
they suffice."""
MIN_MEAN_REQUEST_BYTES = 128 * KIB
"""The time of smaller ones is not that of data."""
MAX_SPAN_S = 600.0
"""They are gathered for no longer: ten intervals of a minute."""
MAX_SILENCE_S = 3600.0
"""What was done during a longer silence of its server may be of another time: no evidence."""
VARIATION = 1.5
"""Of the times of single I/Os on a busy healthy disk: standard deviation over mean (captured: 1.0 and 0.9)."""
APART = 0.5
"""Standard deviation of the logarithm by which healthy disks differ in an interval, however many I/Os they serve
(captured: means up to 2.5 times apart, which is two of these)."""
VOLUME_APART, CHANCE = 3.0, 2.0
"""Times slower than the fastest OST on its disk, in bytes and in I/Os per second, beyond so many standard deviations:
a cause of its own."""

HEARD = 0.75
"""So many of the OSTs must have reported since an interval ended to tell what is common to all: most."""

Direction = tuple[int, bool]
"""(OST index, True for writes)."""


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
    at_least: float
    """In flight if those of the other direction were spread over the whole interval: what is usual is not made faster
    than it was."""

    @property
    def usual(self) -> Evidence:
        """The same, as others are compared with it."""
        return self._replace(in_flight=self.at_least)

    @property
    def rates(self) -> tuple[float, ...]:
        """The four measures: bytes and I/Os, each per second of I/O time and times the number in flight."""
        of_bytes, of_ios = self.bytes / self.seconds, self.ios / self.seconds
        return of_bytes, of_ios, of_bytes * self.in_flight, of_ios * self.in_flight

    @property
    def mean_bytes(self) -> float:
        return self.bytes / self.ios

    def at(self, bytes_per_s: float) -> Evidence:
        """The same I/Os on a disk that moves so much per second while it is busy; infinite: no I/O has ended there."""
        busy_s = self.bytes * self.in_flight / bytes_per_s if bytes_per_s < math.inf else math.inf
        return self._replace(seconds=busy_s)


class Reading(NamedTuple):
    report: OstReport
    io: IoCounters
    at_s: float


def noise(ios: float) -> float:
    """Variance of the logarithm of a well OST's mean time of so many I/Os."""
    return APART**2 + chance(ios)


def chance(ios: float) -> float:
    """The part of it that more I/Os would take away."""
    return math.log1p(VARIATION**2 / max(1.0, ios))


class Intervals:
    """Follows the counters of a file system's OSTs from report to report."""

    def __init__(self, counters: Callable[[OstReport, bool], IoCounters | None]) -> None:
        """`counters`: of a report's writes (True) or reads."""
        self._counters = counters
        self._base: dict[Direction, Reading] = {}
        """What the next interval is counted from."""

    def forget(self, index: int) -> None:
        """The OST's next counters are another server's."""
        for writes in (False, True):
            self._base.pop((index, writes), None)

    def of_server(self, reports: Iterable[OstReport], at_s: float) -> dict[Direction, Evidence]:
        """What has ended on each of one server's OSTs, which may share disks."""
        evidence: dict[Direction, Evidence] = {}
        disks: dict[tuple[str, bool, str], dict[Direction, tuple[Reading, Reading]]] = {}
        for report in reports:
            for writes in (False, True):
                io, key = self._counters(report, writes), (report.index, writes)
                if not io:
                    continue
                now, base = Reading(report, io, at_s), self._base.get(key)
                if not base or base.io.source != io.source or not 0 <= at_s - base.at_s <= MAX_SILENCE_S:
                    self._base[key] = now
                elif report.disk and io.source in DISK_SOURCES:
                    self._base[key] = now
                    disks.setdefault((report.disk, writes, io.source), {})[key] = now, base
                elif own := self._own(key, now, base):
                    evidence[key] = own
        for spans in disks.values():
            evidence |= _of_disk(spans)
        return evidence

    def _own(self, key: Direction, now: Reading, base: Reading) -> Evidence | None:
        if now.io.source in REQUEST_SOURCES:
            since = since_base(now.io, base.io)
            small = since.bytes < MIN_MEAN_REQUEST_BYTES * since.ios
            few = since.ios < MIN_REQUESTS or since.bytes < MIN_REQUEST_BYTES
            if few and not small and now.at_s - base.at_s <= MAX_SPAN_S:
                return None
            if few or small:
                base = now
        self._base[key] = now
        return _between(now, base)


def io_of(report: OstReport, writes: bool) -> IoCounters | None:
    """The report's counters of one direction; of an ossd that sends none, `obdfilter`'s writes. None for none."""
    if report.reads or report.writes:
        return report.writes if writes else report.reads
    return of_requests(report, True, "obdfilter") if writes else None


def since_base(now: IoCounters, base: IoCounters) -> IoCounters:
    """The difference; after a reset, all that the new counters hold. Those of a device hold what others did there since
    the node's boot: then nothing.
    """
    new, old = msgspec.structs.astuple(now)[1:6], msgspec.structs.astuple(base)[1:6]
    if were_reset(now.start_s, base.start_s, new, old):
        return now if now.source != "diskstats" else IoCounters(now.source)
    return IoCounters(now.source, *(n - o for n, o in zip(new, old)))


def _between(now: Reading, base: Reading) -> Evidence | None:
    since = since_base(now.io, base.io)
    if min(since.ios, since.bytes, since.usecs) <= 0:
        return None
    alone, others_s = _in_flight(since, now, base)
    # In the same time, numbers in flight are as the sums of the times (Little's law).
    seconds = since.usecs / 1e6
    most = alone * others_s / seconds
    spread = others_s / (now.at_s - base.at_s) if now.at_s > base.at_s else most
    counts = since.ios, since.bytes, seconds
    return Evidence(base.at_s, now.at_s, since.source, *counts, alone + most, alone + min(most, spread))


def _in_flight(since: IoCounters, now: Reading, base: Reading) -> tuple[float, float]:
    """(mean number of this OST's I/Os of this direction in flight, seconds of those of the other); where the source
    counts the whole disk's, those too, and 0.
    """
    if not since.flight_samples:
        return 1.0, 0.0
    mean = since.flight_sum / since.flight_samples
    if since.source == "brw_stats":
        # Counted per block I/O, of which one (bulk) I/O may have several.
        mean = max(1.0, mean * min(1.0, since.ios / since.flight_samples))
        other, before = _other(now), _other(base)
        if other and before and other.source == before.source == since.source:
            return mean, since_base(other, before).usecs / 1e6
        return mean, 0.0
    if since.source == "diskstats":
        # Of what the device did, only the OST's own.
        pairs = ((now.report.reads, base.report.reads), (now.report.writes, base.report.writes))
        of_device = sum(max(0, new.bytes - old.bytes) for new, old in pairs if new and old)
        of_ost = max(0, now.report.write_bytes - base.report.write_bytes)
        of_ost += max(0, now.report.read_bytes - base.report.read_bytes)
        return max(1e-6, mean * min(1.0, of_ost / of_device)) if of_device and of_ost else mean, 0.0
    return max(1.0, mean), 0.0


def _other(reading: Reading) -> IoCounters | None:
    """The counters of the other direction."""
    report = reading.report
    return report.reads if reading.io is report.writes else report.writes


def _of_disk(spans: dict[Direction, tuple[Reading, Reading]]) -> dict[Direction, Evidence]:
    """What the I/Os of one direction tell of the disk, for all OSTs there; `spans`: (now, base), by one source."""
    parts = {key: part for key, (now, base) in spans.items() if (part := _between(now, base))}
    if not parts:
        return {}
    by_bytes = max(parts.values(), key=lambda e: e.rates[0])
    by_ios = max(parts.values(), key=lambda e: e.rates[1])
    apart = {
        key: e
        for key, e in parts.items()
        if e.rates[0] * _apart(e, by_bytes) < by_bytes.rates[0]
        and e.rates[1] * _apart(e, by_ios) < by_ios.rates[1]
    }
    others = [e for key, e in parts.items() if key not in apart]
    # As many OSTs at once as their times say; `diskstats` knows the whole disk's queue.
    queue = 1.0
    if others[0].source == "brw_stats":
        queue = sum(e.seconds for e in others) ** 2 / sum(e.seconds**2 for e in others)
    return dict.fromkeys(spans, together(others, queue)) | apart


def _apart(one: Evidence, other: Evidence) -> float:
    return VOLUME_APART * math.exp(CHANCE * math.sqrt(noise(one.ios) + noise(other.ios)))


def together(parts: Sequence[Evidence], queue: float = 1.0) -> Evidence:
    """As one; `queue`: so many of them at once."""
    seconds = sum(e.seconds for e in parts)
    return Evidence(
        min(e.begin_s for e in parts),
        max(e.at_s for e in parts),
        parts[0].source,
        sum(e.ios for e in parts),
        sum(e.bytes for e in parts),
        seconds,
        queue * sum(e.in_flight * e.seconds for e in parts) / seconds,
        queue * sum(e.at_least * e.seconds for e in parts) / seconds,
    )


class Wait(NamedTuple):
    """I/Os of one OST that are in flight while none ends, as its server reports it."""

    at_s: float
    kind: bool | None
    """`nonrotational`."""
    seconds: float
    """0: none waits."""
    ios: int


class Waits:
    """OSTs on which no I/O ends, held back until their peers have reported: what stops many disks is not a slow disk.

    Reports of one interval come one after another. When all storage stands still, those of the first server say so
    before the others'; when it goes on, those of the last ones still say so. So a wait counts when half of the other
    OSTs have been reported since, and not where as many wait, or did in their report before.
    """

    def __init__(self) -> None:
        self._newest: dict[int, Wait] = {}
        self._waits: dict[int, bool] = {}
        """Whether it waits, or did in its report before."""
        self._since_s: dict[int, float] = {}
        """Of those that are held back."""

    def note(self, index: int, wait: Wait) -> None:
        before, waits = self._newest.get(index), wait.seconds > 0
        self._newest[index] = wait
        self._waits[index] = waits or bool(before and before.seconds)
        if waits:
            self._since_s.setdefault(index, wait.at_s)
        else:
            self._since_s.pop(index, None)

    def forget_silent(self) -> None:
        """An OST of which nothing is heard any more neither waits nor is waited for."""
        newest_s = max((wait.at_s for wait in self._newest.values()), default=0.0)
        for index in [i for i, wait in self._newest.items() if newest_s - wait.at_s > MAX_SILENCE_S]:
            del self._newest[index], self._waits[index]
            self._since_s.pop(index, None)

    def heard_s(self) -> float:
        """Since when `HEARD` of the OSTs have reported."""
        times = sorted((wait.at_s for wait in self._newest.values()), reverse=True)
        return times[max(0, math.ceil(HEARD * len(times)) - 1)] if times else -math.inf

    @property
    def everywhere(self) -> bool:
        """Whether more than half of the OSTs wait."""
        return 2 * sum(self._waits.values()) > len(self._waits)

    def settled(self) -> dict[int, Wait]:
        """Those that wait for a reason of their own, each report once."""
        settled: dict[int, Wait] = {}
        for index, since_s in list(self._since_s.items()):
            others = [i for i, of in self._newest.items() if i != index and of.at_s >= since_s]
            if 2 * len(others) < len(self._newest) - 1:
                continue
            del self._since_s[index]
            if 2 * sum(self._waits[i] for i in others) < len(others):
                settled[index] = self._newest[index]
        return settled
