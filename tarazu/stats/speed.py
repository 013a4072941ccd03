"""How fast each OST is, estimated from the time that its own I/Os took.

Of each OST we know, for reads and writes, how many I/Os were made in an interval, of how many bytes, how much time
they took in all, and how many were in flight (`tarazu.stats.service` says from where). A long time has three causes:
a slow disk, large I/Os, and many at once. So an OST is compared with its peers (`tarazu.stats.peers`: measured by the
same source, in the same pool, of the same kind) in four ways, and is slow only as far as none of them explains it:

    bytes per second of I/O time               allows for large I/Os
    I/Os per second of I/O time                allows for small ones, whose time is that of the request
    both, times the mean number in flight      allow for a queue: by Little's law, the throughput of the busy disk

once with all its peers, and once with those whose I/Os are small, or large, as its own; where enough of them had I/O
in the same interval, with these only, for what slows all of them makes none slow.

In flight are this OST's I/Os in both directions, or those of all OSTs on its disk. What others do there (a rebuild,
a scrub) is not: if it makes the OST's I/Os slow, the OST is slow for as long.

Equal disks differ by what they happened to serve, and few I/Os say little: `tarazu.stats.slowness` decides, interval
by interval, from what the comparison says. Until it has, an OST counts as equal to its peers; then its own value
stands. The worse direction decides.

The same OST is compared with its own history too, in the same four ways (`tarazu.stats.own`). It is slow by either.

An idle OST has no new evidence and is not slow, unless others on its disk are (`tarazu.stats.disks`). A verdict stands
until I/Os there say otherwise: mdsd lets a few small objects through to a slow OST for that.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median_high
from typing import NamedTuple

import msgspec

from tarazu.stats import peers
from tarazu.stats.disks import put_together
from tarazu.stats.estimate import SpeedEstimate, behind, estimate_of
from tarazu.stats.evidence import Evidence, Seen, io_of, judge
from tarazu.stats.links import NOTICED, Disk, Links
from tarazu.stats.own import AS_USUAL, HEARD, LEAST_WAIT_S, Class, OwnHistory
from tarazu.stats.service import DISK_SOURCES
from tarazu.stats.slowness import DOUBTED, Shown, Slowness
from tarazu.stats.usual import Usual, Usually
from tarazu.stats.waits import Waits
from tarazu.units import KIB
from tarazu.wire.reports import OstReport

MAX_SPAN_S = 600.0
"""Requests are gathered over several intervals until they suffice, but not longer than this."""
MAX_SILENCE_S = 3600.0
"""What was done during a longer silence of its server is no evidence: it may be of another time."""
HISTORY_S = 1.0
"""So often, at most, OSTs are judged by their history."""
UNREAD = 8
"""Intervals of an OST that are kept until somebody asks."""
SMALL_BYTES = 32 * KIB
"""Mean size of I/Os, below which their time is hardly that of data: journals, small files, random reads."""
SEEK_S = 0.01
"""What positioning a disk's head may add to an I/O that is much smaller than those it is compared with."""
SAME_OSTS = 3
SAME_SHARE = 0.25
"""So many of an OST's peers, and such a share, must have had I/O in its interval to be compared with alone."""
SYNC = 2.0
"""Times longer that small I/Os may take whose writers wait for the disk's own cache, which peers' need not."""

Direction = tuple[str, int, bool]
"""(file system, OST index, True for writes)."""
_Side = tuple[int, bool]
"""(OST index, True for writes)."""


class _Judged:
    """One direction of one OST."""

    def __init__(self, writes: bool) -> None:
        self.writes = writes
        self.unread: deque[Evidence] = deque(maxlen=UNREAD)
        self.newest: Evidence | None = None
        """Of those that were judged."""
        self.of_size: dict[bool, Evidence] = {}
        """The newest of small I/Os (True), and of large ones."""
        self.state = Slowness()
        self.usual: tuple[float, ...] = ()
        """The peers' measures."""


class _Verdict(NamedTuple):
    share: float
    """Speed over the usual one, as far as nothing explains it."""
    usual: tuple[float, ...]
    usual_bytes: float
    """Of the peers' mean I/O."""


class SpeedEstimator:
    """Estimates for all OSTs of all file systems; `update` with every report, `estimates` when asked."""

    def __init__(self, usual: Usual | None = None) -> None:
        """`usual`: what is known of each OST from before; it learns."""
        self.usual = Usual() if usual is None else usual
        self._own: dict[str, OwnHistory] = {}
        self._links: dict[str, Links] = {}
        self._history_s: dict[str, float] = {}
        self._base: dict[Direction, Seen] = {}
        """What the next evidence is counted from."""
        self._last: dict[Direction, Seen] = {}
        self._judged: dict[str, dict[_Side, _Judged]] = {}
        self._unread: dict[str, set[_Side]] = {}
        self._waits: dict[str, Waits] = {}
        self._kinds: dict[tuple[str, int], bool | None] = {}

    def update(self, report: OstReport, received_s: float) -> None:
        """Take in one target's counters; `received_s` is on any clock that is not set."""
        self._note(report, received_s)
        for writes in (False, True):
            if io := io_of(report, writes):
                self._take((report.fs_name, report.index, writes), Seen(report, io, received_s))

    def _note(self, report: OstReport, received_s: float) -> None:
        self.usual.pass_time(received_s)
        self._kinds[report.fs_name, report.index] = report.nonrotational
        self._waits.setdefault(report.fs_name, Waits()).note(report, received_s)
        if (links := self._links.get(report.fs_name)) is None:
            links = self._links[report.fs_name] = Links(report.fs_name, self.usual, _own_share)
        links.take(report, received_s)

    def forget_base(self, fs_name: str, index: int) -> None:
        """The target's next counters are another server's: nothing is counted from the last ones."""
        for writes in (False, True):
            self._base.pop((fs_name, index, writes), None)
            self._last.pop((fs_name, index, writes), None)
        if links := self._links.get(fs_name):
            links.forget(index)

    def update_server(self, reports: Iterable[OstReport], received_s: float) -> None:
        """Take in those of one server's targets, which may share disks."""
        on_disk: dict[tuple[str, str, bool, str], dict[int, Seen]] = {}
        sharing: dict[tuple[str, str], list[OstReport]] = {}
        for report in reports:
            if not report.disk:
                self.update(report, received_s)
                continue
            sharing.setdefault((report.fs_name, report.disk), []).append(report)
            for writes in (False, True):
                if io := io_of(report, writes):
                    seen = Seen(report, io, received_s)
                    if io.source in DISK_SOURCES:
                        group = (report.fs_name, report.disk, writes, io.source)
                        on_disk.setdefault(group, {})[report.index] = seen
                    else:
                        self._take((report.fs_name, report.index, writes), seen)
        ended: set[tuple[str, str]] = set()
        for (fs_name, disk, writes, _), now in on_disk.items():
            if self._take_disk(fs_name, writes, now):
                ended.add((fs_name, disk))
        for disk_of, here in sharing.items():
            # Where nothing ended on the whole disk, all that lie on it wait.
            longest = max(here, key=lambda r: r.waiting_s)
            for report in here:
                waits = report if disk_of in ended or not longest.waiting_s else longest
                self._note(_waiting_as(report, waits), received_s)

    def _since(self, key: Direction, now: Seen) -> tuple[Seen, Seen] | None:
        """(base, last) that `now` can be compared with; None begins anew."""
        base, last = self._base.get(key), self._last.get(key)
        self._last[key] = now
        if base and last and base.io.source == now.io.source and 0 <= now.at_s - last.at_s <= MAX_SILENCE_S:
            return base, last
        self._base[key] = now
        if last and now.at_s < last.at_s:
            self._clock_was_set_back(key, now.at_s)
        return None

    def _clock_was_set_back(self, key: Direction, at_s: float) -> None:
        """What seems to lie ahead would be of the same time as all that comes."""
        judged = self._judged.get(key[0], {}).get(key[1:])
        if judged and judged.newest:
            judged.newest = judged.newest._replace(begin_s=at_s, at_s=at_s)
        if judged:
            judged.of_size = {s: e._replace(begin_s=at_s, at_s=at_s) for s, e in judged.of_size.items()}
            judged.unread.clear()
            self._unread.get(key[0], set()).discard(key[1:])

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

    def _take_disk(self, fs_name: str, writes: bool, now: Mapping[int, Seen]) -> bool:
        """As `_take`, for all OSTs on one disk; whether any I/O has ended there."""
        keys = {index: (fs_name, index, writes) for index in now}
        known = {i: since[0] for i in now if (since := self._since(keys[i], now[i]))}
        of_disk, apart = put_together({i: (now[i], base) for i, base in known.items()})
        for i, base in known.items():
            if of_disk or now[i].at_s - base.at_s > MAX_SPAN_S:
                self._base[keys[i]] = now[i]
        if of_disk:
            for i in now:
                self._keep(keys[i], apart.get(i, of_disk))
        return of_disk is not None

    def _keep(self, key: Direction, evidence: Evidence) -> None:
        fs_name, side = key[0], key[1:]
        judged = self._judged.setdefault(fs_name, {}).get(side)
        if judged is None or (judged.newest and judged.newest.source != evidence.source):
            # By another source: nothing that was seen before compares.
            judged = self._judged[fs_name][side] = _Judged(key[2])
        judged.unread.append(evidence)
        self._unread.setdefault(fs_name, set()).add(side)

    def estimates(
        self,
        fs_name: str,
        now: float,
        pools: Mapping[int, Sequence[str]] | None = None,
        servers: Mapping[int, str] | None = None,
    ) -> dict[int, SpeedEstimate]:
        """OST index → estimate. OSTs that never showed enough evidence are absent.

        `pools` and `servers`: OST index → its pools, its OSS.
        """
        while unread := self._unread.pop(fs_name, None):
            self._judge(fs_name, unread, pools or {}, servers or {})
        own = self._own.get(fs_name)
        self._judge_by_history(fs_name, now, servers or {}, pools or {})
        self._judge_waiting(fs_name, pools or {}, servers or {})
        by_ost: dict[int, SpeedEstimate] = {}
        for (index, writes), judged in sorted(
            self._judged.get(fs_name, {}).items(), key=lambda of: not of[0][1]
        ):
            known = own.of((index, writes)) if own else None
            estimate = estimate_of(judged, known)
            if estimate and (other := by_ost.get(index)):
                worse = estimate if estimate.relative < other.relative else other
                estimate = worse._replace(score=max(estimate.score, other.score))
            if estimate:
                by_ost[index] = estimate
        return self._with_links(fs_name, by_ost, servers or {})

    def _judge_by_history(
        self, fs_name: str, now: float, servers: Mapping[int, str], pools: Mapping[int, Sequence[str]]
    ) -> None:
        """Each OST, and the way to each server, beside what is usual for it; once in `HISTORY_S` at most."""
        waits, links = self._waits.get(fs_name), self._links.get(fs_name)
        if not waits or not links or 0 <= now - self._history_s.get(fs_name, -math.inf) < HISTORY_S:
            return
        self._history_s[fs_name] = now
        heard_s = waits.heard_s(HEARD)
        if own := self._own.get(fs_name):
            own.settle(heard_s, servers, pools)
        links.judge(heard_s, servers, self._disks(fs_name))

    def _disks(self, fs_name: str) -> dict[int, Disk]:
        """What each OST's disk did last: of reads and writes what took longer."""
        own, disks = self._own.get(fs_name), dict[int, Disk]()
        for side, judged in self._judged.get(fs_name, {}).items():
            if (e := judged.newest) and e.source in DISK_SOURCES:
                slowness = own.newest(side)[1] if own else 0.0
                disk, other = (
                    Disk(e.at_s, e.seconds, e.in_flight, slowness, e.seconds / e.bytes),
                    disks.get(side[0]),
                )
                if not other or (disk.at_s, disk.seconds) > (other.at_s, other.seconds):
                    disks[side[0]] = disk
        return disks

    def _with_links(
        self, fs_name: str, by_ost: dict[int, SpeedEstimate], servers: Mapping[int, str]
    ) -> dict[int, SpeedEstimate]:
        links = self._links.get(fs_name)
        if not links:
            return by_ost
        slow = links.slow()
        links.noticed = {i for i in links.noticed if servers.get(i, "") in slow}
        disks = self._disks(fs_name) if slow else {}
        for index, estimate in by_ost.items():
            if link := slow.get(servers.get(index, "")):
                most = 1.0 if index in links.noticed else NOTICED
                by_ost[index] = behind(link, estimate, disks.get(index), servers[index], most)
                if by_ost[index] is not estimate:
                    links.noticed.add(index)
        return by_ost

    def common(self, fs_name: str) -> float:
        """Speed of most OSTs over what is usual for them, where it is no cause of their own: network, load, new
        firmware, another kind of jobs. 1: as usual.
        """
        own = self._own.get(fs_name)
        return own.common() if own else 1.0

    def _judge(
        self,
        fs_name: str,
        unread: Iterable[_Side],
        pools: Mapping[int, Sequence[str]],
        servers: Mapping[int, str],
    ) -> None:
        """Each OST's oldest interval that was not judged, beside its peers."""
        here = self._judged[fs_name]
        fresh = set(unread)
        waits = self._waits.get(fs_name)
        # What has ended where all stood still says nothing before the others' has.
        by_all = waits is not None and waits.everywhere
        for side in fresh:
            judged = here[side]
            judged.newest = e = judged.unread.popleft()
            judged.of_size[e.mean_bytes < SMALL_BYTES] = e
            if judged.unread:
                self._unread.setdefault(fs_name, set()).add(side)
        own = self._own.setdefault(fs_name, OwnHistory(fs_name, self.usual, _own_share))
        for class_, of_class in self._comparable(fs_name).items():
            new = {i for i, judged in of_class.items() if (i, judged.writes) in fresh}
            if new and not by_all:
                verdicts = _compared(of_class, new, pools, servers)
                # Counted once for each set: for each of its OSTs it took seconds at 3,600.
                sets = {id(beside): beside for _, beside in verdicts.values()}
                well = {
                    key: {i: e.ios for i, e in beside.items() if not of_class[i].state.slow}
                    for key, beside in sets.items()
                }
                ios = {key: sum(of.values()) for key, of in well.items()}
                for i in new:
                    verdict, beside = verdicts[i]
                    of = well[id(beside)]
                    others = len(of) - (i in of), ios[id(beside)] - of.get(i, 0)
                    self._judge_one(own, class_, i, of_class[i], verdict, beside[i], others)

    def _judge_one(
        self,
        own: OwnHistory,
        of_class: Class,
        index: int,
        judged: _Judged,
        verdict: _Verdict,
        e: Evidence,
        others: tuple[int, int],
    ) -> None:
        """One interval, beside `others` (OSTs, their I/Os) and beside what is usual for the OST itself."""
        side = index, judged.writes
        slowness, shared, most = own.slowness(side, e), own.shared(of_class), math.inf
        if slowness is not None and shared > AS_USUAL:
            # What most OSTs share explains it beside peers too.
            left = math.exp(min(0.0, shared - slowness))
            verdict = verdict._replace(share=max(verdict.share, left))
        elif slowness is not None and slowness < AS_USUAL:
            most = DOUBTED
        self._take_verdict(judged, verdict, e, others, most)
        own.show(side, e, of_class, suspect=judged.state.slow or -math.log(verdict.share) > AS_USUAL)

    @staticmethod
    def _take_verdict(
        judged: _Judged, verdict: _Verdict, e: Evidence, others: tuple[int, int], most: float
    ) -> None:
        judged.usual = verdict.usual
        of_bytes, of_ios = verdict.usual[:2]
        expected_s = max(e.mean_bytes / of_bytes, 1 / of_ios)
        shown = Shown(
            -math.log(verdict.share),
            e.ios,
            *others,
            (e.seconds / e.ios - expected_s) / max(1.0, e.in_flight),
            e.rates[2],
        )
        if others[0]:
            slowest = judged.state.slowest_bytes_per_s
            still = _share(_at(e, slowest), verdict.usual, verdict.usual_bytes)
            judged.state.take(shown, still, most=most)

    def _comparable(self, fs_name: str) -> dict[tuple[bool, str, bool | None], dict[int, _Judged]]:
        """What was judged, or is about to be, by direction, source and kind of disk."""
        groups: dict[tuple[bool, str, bool | None], dict[int, _Judged]] = {}
        for (index, writes), judged in self._judged.get(fs_name, {}).items():
            if e := judged.newest:
                groups.setdefault((writes, e.source, self._kinds.get((fs_name, index))), {})[index] = judged
        return groups

    def _judge_waiting(
        self, fs_name: str, pools: Mapping[int, Sequence[str]], servers: Mapping[int, str]
    ) -> None:
        """OSTs on which nothing ends, by how long one I/O of their peers takes."""
        waits = self._waits.get(fs_name)
        waiting = waits.settled(servers) if waits else {}
        if not waiting:
            return
        here = self._judged.setdefault(fs_name, {})
        for (writes, _, kind), of_class in self._comparable(fs_name).items():
            if not writes:
                continue
            times = {i: _usual(j) for i, j in of_class.items() if i not in waiting}
            for index, report in waiting.items():
                mine = set(pools.get(index, ()))
                own = [e for i, e in times.items() if not mine or mine.intersection(pools.get(i, ()))]
                if self._kinds.get((fs_name, index)) != kind:
                    continue
                if len(own) < 2:
                    if history := self._own.get(fs_name):
                        history.wait((index, True), report.waiting_s, report.waiting_ios)
                    continue
                one_s = median_high(e.seconds / e.ios / max(1.0, e.in_flight) for e in own)
                queue_s = median_high(e.seconds / e.ios for e in own)
                usual_s = max(LEAST_WAIT_S, queue_s, one_s * report.waiting_ios)
                judged = here.setdefault((index, True), _Judged(True))
                judged.usual = judged.usual or median_high([e.rates for e in own])
                judged.state.wait(report.waiting_s, usual_s)


def _own_share(e: Evidence, usually: Usually, bytes_per_s: float | None = None) -> float:
    """Of `e` beside what is usual for its OST; with `bytes_per_s` as if its disk moved so much while it is busy."""
    return _share(e if bytes_per_s is None else _at(e, bytes_per_s), usually.rates, usually.mean_bytes)


def _waiting_as(report: OstReport, other: OstReport) -> OstReport:
    if report is other or report.waiting_s == other.waiting_s:
        return report
    return msgspec.structs.replace(report, waiting_s=other.waiting_s, waiting_ios=other.waiting_ios)


def _usual(judged: _Judged) -> Evidence:
    """The newest of large I/Os, where there is one."""
    return judged.of_size[min(judged.of_size)].at_any_time


def _compared(
    of_class: Mapping[int, _Judged],
    fresh: Collection[int],
    pools: Mapping[int, Sequence[str]],
    servers: Mapping[int, str],
) -> dict[int, tuple[_Verdict, Mapping[int, Evidence]]]:
    """Fresh OST → (its verdict, beside whose I/Os), by the smallest set where there are several: a pool of flash, not
    one of all OSTs.
    """
    newest = {i: j.newest for i, j in of_class.items() if j.newest}
    begin_s = min(newest[i].begin_s for i in fresh)
    evaluations: dict[int, tuple[_Verdict, Mapping[int, Evidence]]] = {}
    for group in sorted(peers.groups(newest, pools), key=len):
        mine = [i for i in group if i in fresh and i not in evaluations]
        if not mine:
            continue
        beside = _of_one_time({i: newest[i] for i in group}, begin_s, servers)
        verdicts = _verdicts(beside, servers)
        evaluations |= {i: (verdicts[i], beside) for i in mine}
        for small in (False, True):
            of_size = {i: e for i in group if (e := of_class[i].of_size.get(small))}
            alike = _of_one_time(of_size, begin_s, servers)
            if len(alike) > 1 and alike != beside:
                verdicts = _verdicts(alike, servers)
                for i in mine:
                    if alike.get(i) is newest[i] and verdicts[i] < evaluations[i][0]:
                        evaluations[i] = verdicts[i], alike
    return {
        i: evaluations.get(i) or (_Verdict(1.0, newest[i].rates, newest[i].mean_bytes), {i: newest[i]})
        for i in fresh
    }


def _of_one_time(
    newest: Mapping[int, Evidence], begin_s: float, servers: Mapping[int, str]
) -> Mapping[int, Evidence]:
    """Those of the interval that began then, where they are enough; else all."""
    same = {i: e for i, e in newest.items() if e.at_s >= begin_s}
    enough = len(same) >= max(SAME_OSTS, SAME_SHARE * len(newest))
    return same if enough and len({servers.get(i, str(i)) for i in same}) > 1 else newest


def _verdicts(newest: Mapping[int, Evidence], servers: Mapping[int, str]) -> dict[int, _Verdict]:
    # A queue of both directions excuses an OST as far as it can, but it does not make its peers faster than they were.
    rates = {i: e.at_any_time.rates for i, e in newest.items()}
    by_rate = [peers.references({i: of[r] for i, of in rates.items()}, servers) for r in range(4)]
    sizes = peers.references({i: e.mean_bytes for i, e in newest.items()}, servers)
    verdicts = {}
    for i, e in newest.items():
        usual = tuple(of[i] for of in by_rate)
        verdicts[i] = _Verdict(_share(e, usual, sizes[i]), usual, sizes[i])
    return verdicts


def _share(e: Evidence, usual: Sequence[float], usual_bytes: float) -> float:
    """Speed over the usual one, as far as nothing explains it; at most 1."""
    share = max(_ratios(e, e.rates, usual, usual_bytes))
    return min(1.0, share * SYNC if e.mean_bytes < SMALL_BYTES else share)


def _at(e: Evidence, bytes_per_s: float) -> Evidence:
    """The same I/Os on a disk that moves so much per second while it is busy; infinity: no I/O has ended there yet."""
    seconds = e.bytes * e.in_flight / bytes_per_s if bytes_per_s < math.inf else math.inf
    return e._replace(seconds=seconds)


def _ratios(
    e: Evidence, rates: Sequence[float], reference: Sequence[float], usual_bytes: float
) -> list[float]:
    """The four measures over those of the peers; a much smaller I/O may take a seek more than the peers'."""
    seek_s = SEEK_S if e.source in DISK_SOURCES and e.mean_bytes < usual_bytes / 4 else 0.0
    own_bytes, own_ios, busy_bytes, busy_ios = rates
    return [
        own_bytes / reference[0],
        own_ios * (1 / reference[1] + seek_s),
        busy_bytes / reference[2],
        busy_ios * (1 / reference[3] + seek_s),
    ]
