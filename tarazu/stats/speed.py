"""How fast each OST is, estimated from the time that its own I/Os took.

Of each OST we know, for reads and writes, how many I/Os were made in an interval, of how many bytes, how much time
they took in all, and how many were in flight (`tarazu.stats.service` says from where). A long time has three causes:
a slow disk, large I/Os, and many at once. So an OST is compared with its peers (`tarazu.stats.peers`: measured by the
same source, in the same pool, of the same kind) in four ways, and is slow only as far as none of them explains it:

    bytes per second of I/O time               allows for large I/Os
    I/Os per second of I/O time                allows for small ones, whose time is that of the request
    both, times the mean number in flight      allow for a queue: by Little's law, the throughput of the busy disk

once with all its peers, and once with those whose I/Os are small, or large, as its own.

In flight are this OST's I/Os in both directions, or those of all OSTs on its disk. What others do there (a rebuild,
a scrub) is not: if it makes the OST's I/Os slow, the OST is slow for as long.

Equal disks differ by what they happened to serve, and few I/Os say little: within a factor `BAND`, and more the fewer
I/Os were seen (`band`), an OST counts as equal to its peers; beyond, its own value stands. The worse direction decides.

An interval counts with at least `MIN_IOS` disk I/Os; fewer wait for those of the next intervals. An idle OST has no
new evidence and is not slow, unless others on its disk are (`tarazu.stats.disks`). Without new evidence a verdict fades
and is forgotten after a time that is set, so that a slow target that got nothing is tried again: the allocator gives it
a first stripe as soon as the estimate carries one. What that stripe shows counts more than what was seen long before
(weights that halve in a third of that time), so one look decides.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tarazu.stats import peers
from tarazu.stats.disks import put_together
from tarazu.stats.evidence import Evidence, Seen, io_of, judge
from tarazu.stats.service import DISK_SOURCES
from tarazu.units import KIB
from tarazu.wire.messages import OstReport

MAX_SPAN_S = 600.0
"""I/Os are gathered over several intervals until they suffice, but not longer than this."""
MAX_SILENCE_S = 3600.0
"""What was done during a longer silence of its server is no evidence: it may be of another time."""
INTERVALS = 3
"""Newest intervals with evidence that the median is taken over: two good ones end a bad verdict, one bad one
makes none."""
BAND = 2.0
"""Within this factor of the reference an OST counts as equal, however many I/Os were seen."""
BAND_NOISE = 2.2
"""Growth of the band for few I/Os: times taken from a busy healthy disk vary by 1.5 times their mean."""
SMALL_BYTES = 32 * KIB
"""Mean size of I/Os, below which their time is hardly that of data: journals, small files, random reads."""
SEEK_S = 0.01
"""What positioning a disk's head may add to an I/O that is much smaller than those it is compared with."""
FORGET_S = 1800.0
"""Without new evidence a verdict fades, evenly in powers, and is gone after this."""
GRACE_S = 120.0
"""An estimate stands unchanged this long after its last evidence (two of the paper's intervals)."""

Direction = tuple[str, int, bool]
"""(file system, OST index, True for writes)."""


class Estimate(NamedTuple):
    write_bytes_per_s: float
    """Per second of I/O time (of reads where only reads were seen): comparable between OSTs, not a bandwidth. That of
    the peers while it counts as equal."""
    write_latency_s: float
    """Mean time of one I/O."""
    relative: float
    """Speed over that of the peers; 1 while it counts as equal. Never above: this is no measure of bandwidth."""
    source: str


class _Measured(NamedTuple):
    """The evidence of one direction of one OST, put together."""

    at_s: float
    source: str
    ios: float
    mean_bytes: float
    rates: tuple[float, ...]


class _Compared(NamedTuple):
    measured: _Measured
    own: float
    """Speed over the peers', before it fades and where the band is not applied."""
    usual: tuple[float, ...]
    """The peers' measures."""
    peers_ios: float
    """What that rests on: the I/Os of those that are not slow themselves."""


_Terms = tuple[dict[int, Sequence[str]], dict[int, str]]
"""(pools, servers) of the OSTs."""


class SpeedEstimator:
    """Estimates for all OSTs of all file systems; `update` with every report, `estimates` when asked."""

    def __init__(self, forget_s: float = FORGET_S) -> None:
        self.forget_s = forget_s
        self._grace_s = min(GRACE_S, forget_s / 3)
        self._base: dict[Direction, Seen] = {}
        """What the next evidence is counted from."""
        self._last: dict[Direction, Seen] = {}
        self._evidence: dict[str, dict[tuple[int, bool], deque[Evidence]]] = {}
        """File system → (OST index, True for writes) → the newest."""
        self._measured: dict[Direction, _Measured] = {}
        """Put together when it is asked for, until there is new evidence."""
        self._compared: dict[str, tuple[_Terms, list[tuple[int, _Compared]]]] = {}
        """File system → what was compared under which terms, as long as there is no new evidence."""
        self._reports: dict[tuple[str, int], OstReport] = {}

    def update(self, report: OstReport, received_s: float) -> None:
        """Take in one target's counters; `received_s` is on any clock that is not set."""
        self._reports[report.fs_name, report.index] = report
        for writes in (False, True):
            if io := io_of(report, writes):
                self._take((report.fs_name, report.index, writes), Seen(report, io, received_s))

    def forget_base(self, fs_name: str, index: int) -> None:
        """The target's next counters are another server's: nothing is counted from the last ones."""
        for writes in (False, True):
            self._base.pop((fs_name, index, writes), None)
            self._last.pop((fs_name, index, writes), None)

    def update_server(self, reports: Iterable[OstReport], received_s: float) -> None:
        """Take in those of one server's targets, which may share disks."""
        on_disk: dict[tuple[str, str, bool, str], dict[int, Seen]] = {}
        for report in reports:
            if not report.disk:
                self.update(report, received_s)
                continue
            self._reports[report.fs_name, report.index] = report
            for writes in (False, True):
                if io := io_of(report, writes):
                    seen = Seen(report, io, received_s)
                    if io.source in DISK_SOURCES:
                        group = (report.fs_name, report.disk, writes, io.source)
                        on_disk.setdefault(group, {})[report.index] = seen
                    else:
                        self._take((report.fs_name, report.index, writes), seen)
        for (fs_name, _, writes, _), now in on_disk.items():
            self._take_disk(fs_name, writes, now)

    def _since(self, key: Direction, now: Seen) -> tuple[Seen, Seen] | None:
        """(base, last) that `now` can be compared with; None begins anew."""
        base, last = self._base.get(key), self._last.get(key)
        self._last[key] = now
        kept = self._evidence.get(key[0], {}).get(key[1:])
        if last and now.at_s < last.at_s and kept:
            # The clock was set back: what seems to lie ahead would never fade.
            earlier = [e._replace(at_s=min(e.at_s, now.at_s)) for e in kept]
            kept.clear()
            kept.extend(earlier)
            self._changed(key)
        if base and last and base.io.source == now.io.source and now.at_s - last.at_s <= MAX_SILENCE_S:
            return base, last
        self._base[key] = now
        return None

    def _take(self, key: Direction, now: Seen) -> None:
        if not (known := self._since(key, now)):
            return
        base, last = known
        moved, evidence = judge(now, base)
        if evidence and last is not base:
            # An interval that suffices is not mixed with what was left over before.
            evidence = judge(now, last)[1] or evidence
        if moved or now.at_s - base.at_s > MAX_SPAN_S:
            self._base[key] = now
        if evidence:
            self._keep(key, evidence)

    def _take_disk(self, fs_name: str, writes: bool, now: Mapping[int, Seen]) -> None:
        """As `_take`, for all OSTs on one disk."""
        keys = {index: (fs_name, index, writes) for index in now}
        known = {i: since for i in now if (since := self._since(keys[i], now[i]))}
        of_disk, apart = put_together({i: (now[i], base) for i, (base, _) in known.items()})
        if of_disk and any(last is not base for base, last in known.values()):
            newest = put_together({i: (now[i], last) for i, (_, last) in known.items()})
            of_disk, apart = newest if newest.of_disk else (of_disk, apart)
        for i, (base, _) in known.items():
            if of_disk or now[i].at_s - base.at_s > MAX_SPAN_S:
                self._base[keys[i]] = now[i]
        if of_disk:
            for i in now:
                self._keep(keys[i], apart.get(i, of_disk))

    def _keep(self, key: Direction, evidence: Evidence) -> None:
        kept = self._evidence.setdefault(key[0], {}).setdefault(key[1:], deque(maxlen=INTERVALS))
        if kept and kept[-1].source != evidence.source:
            kept.clear()
        kept.append(evidence)
        self._changed(key)

    def _changed(self, key: Direction) -> None:
        self._measured.pop(key, None)
        self._compared.pop(key[0], None)

    def estimates(
        self,
        fs_name: str,
        now: float,
        pools: Mapping[int, Sequence[str]] | None = None,
        servers: Mapping[int, str] | None = None,
    ) -> dict[int, Estimate]:
        """OST index → estimate at `now`. OSTs that never showed enough evidence are absent.

        `pools` and `servers`: OST index → its pools, its OSS.
        """
        terms = (dict(pools or {}), dict(servers or {}))
        if fs_name not in self._compared or self._compared[fs_name][0] != terms:
            self._compared[fs_name] = (terms, self._compare(fs_name, *terms))
        found: dict[int, Estimate] = {}
        for index, compared in self._compared[fs_name][1]:
            estimate = self._estimate(compared, now)
            if index not in found or estimate.relative < found[index].relative:
                found[index] = estimate
        return found

    def _compare(
        self, fs_name: str, pools: Mapping[int, Sequence[str]], servers: Mapping[int, str]
    ) -> list[tuple[int, _Compared]]:
        """Each OST's writes, then its reads, beside those of its peers."""
        comparable: dict[tuple[bool, str, bool | None], dict[int, _Measured]] = {}
        for (index, writes), evidence in self._evidence.get(fs_name, {}).items():
            key = (fs_name, index, writes)
            if (measured := self._measured.get(key)) is None:
                measured = self._measured[key] = self._usual(evidence)
            kind = self._reports[fs_name, index].nonrotational
            comparable.setdefault((not writes, measured.source, kind), {})[index] = measured
        order = sorted(comparable, key=lambda of: of[:2])
        return [item for of in order for item in _compared(comparable[of], pools, servers).items()]

    def _usual(self, evidence: Sequence[Evidence]) -> _Measured:
        """Medians of the newest evidence, what is older than the newest counting less."""
        newest = evidence[-1].at_s
        half_life_s = self.forget_s / 3
        weights = [0.5 ** (max(0.0, newest - e.at_s - self._grace_s) / half_life_s) for e in evidence]
        return _Measured(
            newest,
            evidence[-1].source,
            sum(w * e.ios for w, e in zip(weights, evidence)),
            sum(w * e.bytes for w, e in zip(weights, evidence))
            / sum(w * e.ios for w, e in zip(weights, evidence)),
            tuple(_median(values, weights) for values in zip(*(e.rates for e in evidence))),
        )

    def _estimate(self, compared: _Compared, now: float) -> Estimate:
        m, own, usual, peers_ios = compared
        weight = min(1.0, max(0.0, 1 - (now - m.at_s - self._grace_s) / (self.forget_s - self._grace_s)))
        # Drawn towards 1 on a logarithmic scale: speeds differ by factors.
        relative = math.exp(weight * math.log(own))
        if relative > 1 / band(m.ios, peers_ios):
            relative = 1.0
        return Estimate(usual[0] * relative, 1 / (usual[1] * relative), relative, m.source)


def _compared(
    measured: Mapping[int, _Measured], pools: Mapping[int, Sequence[str]], servers: Mapping[int, str]
) -> dict[int, _Compared]:
    """Of those that the smallest set decides where there are several: a pool of flash, not one of all OSTs."""
    best = {index: (-len(measured) - 1, 1.0, m.rates, 0.0) for index, m in measured.items()}
    for group in peers.groups(measured, pools):
        of_group = {i: measured[i] for i in group}
        verdicts = _verdicts(of_group, servers)
        small = {i: m for i, m in of_group.items() if m.mean_bytes < SMALL_BYTES}
        large = {i: m for i, m in of_group.items() if m.mean_bytes >= SMALL_BYTES}
        for alike in (small, large):
            if 1 < len(alike) < len(group):
                for i, verdict in _verdicts(alike, servers).items():
                    verdicts[i] = min(verdicts[i], verdict)
        well = {i: m.ios for i, m in of_group.items() if verdicts[i][0] > 1 / peers.GAP}
        ios = sum(well.values())
        for i, verdict in verdicts.items():
            best[i] = max(best[i], (-len(group), *verdict, ios - well.get(i, 0.0)))
    return {i: _Compared(m, *best[i][1:]) for i, m in measured.items()}


def band(ios: float, peers_ios: float = math.inf) -> float:
    """Within which factor an OST counts as equal to its peers after so many I/Os of its own and of theirs.

    3.3 for 12 beside many, 3.8 for 12 beside 12, 2.4 for 100.
    """
    return BAND * (1 + BAND_NOISE * math.sqrt(1 / max(1.0, ios) + 1 / max(1.0, peers_ios)))


def _verdicts(
    measured: Mapping[int, _Measured], servers: Mapping[int, str]
) -> dict[int, tuple[float, tuple[float, ...]]]:
    """OST → (its speed over the usual one, as far as nothing explains it; the usual measures)."""
    by_rate = [peers.references({i: m.rates[r] for i, m in measured.items()}, servers) for r in range(4)]
    sizes = peers.references({i: m.mean_bytes for i, m in measured.items()}, servers)
    found = {}
    for i, m in measured.items():
        usual = tuple(of[i] for of in by_rate)
        found[i] = (min(1.0, max(_ratios(m, usual, sizes[i]))), usual)
    return found


def _ratios(m: _Measured, reference: Sequence[float], usual_bytes: float) -> list[float]:
    """The four measures over those of the peers; a much smaller I/O may take a seek more than the peers'."""
    seek_s = SEEK_S if m.source in DISK_SOURCES and m.mean_bytes < usual_bytes / 4 else 0.0
    own_bytes, own_ios, busy_bytes, busy_ios = m.rates
    return [
        own_bytes / reference[0],
        own_ios * (1 / reference[1] + seek_s),
        busy_bytes / reference[2],
        busy_ios * (1 / reference[3] + seek_s),
    ]


def _median(values: Sequence[float], weights: Sequence[float]) -> float:
    """Where half of the weight is reached from below; the mean of both sides where it is reached exactly."""
    if len(set(weights)) == 1:  # nearly always, and the only one that is asked for with every report
        of = sorted(values)
        return (of[(len(of) - 1) // 2] + of[len(of) // 2]) / 2
    ordered = sorted(zip(values, weights))
    half = sum(weights) / 2
    below = 0.0
    for i, (value, weight) in enumerate(ordered):
        below += weight
        if math.isclose(below, half, rel_tol=1e-9):
            return (value + ordered[i + 1][0]) / 2
        if below > half:
            return value
    raise ValueError("no values")
