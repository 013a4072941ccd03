"""Which OSTs are slow: `SlowOstFinder` tells how that is found."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_high, median_low
from typing import NamedTuple

from tarazu.ost_state import SICK
from tarazu.stats import peers
from tarazu.stats.evidence import Evidence, Intervals, Wait, Waits, io_of, together
from tarazu.stats.peers import Newest, OfPeers, Reference, slowness
from tarazu.stats.service import WAY, of_requests
from tarazu.stats.usual import Usual, Usually, cell_of
from tarazu.units import counted
from tarazu.wire.reports import OstReport

SHIFT = math.log(5)
"""The slowness that is tested for; at less than its root, 1/2.2, time makes no OST slow."""
PROOF = 9.0
"""So much likelier (logarithm: 8,000 times) is an OST slow than well; chosen on generated days with other seeds than
those of `tests/benchmarks/slow_osts`."""
MOST_OF_AN_INTERVAL = PROOF / 2
"""Whatever happened in it: any disk may stall."""
ANY_INTERVAL = PROOF / 3
"""Where a stall explains it."""
DOUBTED = PROOF / 6
"""Slower than its peers, but as fast as it always was."""
NO_STALL_S = 30.0
"""No stall lasts for so long (a disk's own limit of recovery): all I/Os of an interval that were together late by more
may be all of a proof."""
STALL_S = 0.65
"""A stall of a healthy disk that lasts for so long more is e times rarer (captured: half a second in the mean)."""
FAR = 10.0
"""Times longer than usual that an I/O takes, or is outstanding, before its seconds count for themselves."""
WELL = 0.4 * PROOF
MOST_WELL = WELL / 2
"""As `PROOF` and `MOST_OF_AN_INTERVAL`, for being well again: two intervals at least."""
SLOW = 0.9 * SICK
"""What is called slow is no faster, until it is called well."""
KEPT = 3
"""Newest intervals that give a slow OST's speed."""
UNREAD = 8
"""Intervals of an OST that are kept until somebody asks."""
LEAST_WAIT_S = 0.1
"""An I/O that is outstanding is expected to take this long at least."""
AS_USUAL = math.log(2)
"""Less slow than so beside its history: as usual."""
MINUTE_S = 60.0
"""What one OST does varies from minute to minute: a shorter interval counts for less beside its history."""
SUSPECT, SHARED = 0.05, 0.25
"""Weights of what may be of a slow disk, so that none is usual within weeks, and of what all OSTs share."""
COMMON_S = 10.0
"""What most were like is counted anew for each such step of the time from which an interval is."""
COMMON_OSTS, COMMON_SERVERS = 4, 2
"""Fewer OSTs, or all of one server of several, tell of no cause that is common to all."""
COMMON_SHARE = 0.45
"""What so many are slower by is common to all: nearly half."""
LIKE, LIKE_OSTS, LIKE_SERVERS, LIKE_S = math.log(1.5), 3, 2, 600.0
"""So little slower than so many equal OSTs that are as usual is no sickness; they had such I/Os so lately."""
MIN_REQUESTS = 16
"""To a server in an interval, to judge its way."""
BUSY_TIMES, REMEMBERED = 2.0, 0.02
"""A server that moves so much more than it usually does is no measure: its requests may wait for each other. Weight of
the newest interval in what is usual."""
NOTICED = 0.8
"""Share of its speed that a slow way to a server leaves an OST, above which nobody need hear of it."""

Side = tuple[int | str, bool]
"""(OST index or a server's name, True for writes)."""
Class = tuple[bool, str, bool | None]
"""(True for writes, source, kind of disk)."""
Pools = Mapping[int, Sequence[str]]
"""OST index → its pools."""
Servers = Mapping[int, str]
"""OST index → its OSS."""


class SpeedEstimate(NamedTuple):
    write_bytes_per_s: float
    """Per second of I/O time (of reads where only reads were seen): comparable between OSTs, not a bandwidth. That of
    the peers while it counts as equal."""
    write_latency_s: float
    """Mean time of one I/O."""
    relative: float
    """Speed over the usual one; 1 while it counts as equal. Never above: this is no measure of bandwidth."""
    source: str
    own_relative: float | None = None
    """Speed over what is usual for this OST itself, in the same way; None: too little is known of it."""
    score: float = 0.0
    """0 for well, 1 for slow: proof that was gathered, or that it is not well again."""
    why: str = ""
    """Of a slow one, for people."""


class Beside(NamedTuple):
    """One interval beside what was expected of it."""

    slowness: float
    """Logarithm of how many times slower it was, as far as nothing explains it."""
    noise: float
    """Variance of that for a well OST."""
    reference: Reference
    common: float = 0.0
    """What all OSTs share, and was taken off."""
    most: float = math.inf
    """What the interval may count for."""
    weight: float = 1.0

    def likelier(self, e: Evidence) -> float:
        """Logarithm of how many times likelier it is of a slow OST than of a well one, as far as it counts."""
        likelier, most = SHIFT / self.noise * (self.slowness - SHIFT / 2), MOST_OF_AN_INTERVAL
        if self.slowness >= SHIFT:
            of_bytes, of_ios = self.reference.rates[:2]
            expected_s = max(e.mean_bytes / of_bytes, 1 / of_ios) * math.exp(self.common)
            excess_s = (e.seconds / e.ios - expected_s) / max(1.0, e.in_flight)
            stalls, whole = excess_s / STALL_S, excess_s * e.ios > NO_STALL_S
            most = PROOF if whole else min(MOST_OF_AN_INTERVAL, ANY_INTERVAL + stalls * e.ios)
            likelier = self.slowness**2 / (2 * self.noise)
            if self.slowness > math.log(FAR) and stalls > min(most, likelier):
                most = likelier = stalls
        return self.weight * min(self.most, most, likelier)


class Suspicion:
    """The sequential test of one direction (reads or writes) of one OST."""

    __slots__ = ("_kept", "_scores", "_slowest_bytes_per_s", "_well", "slow")

    def __init__(self) -> None:
        self._scores: dict[type[Reference], float] = {}
        """Towards `PROOF`, beside peers and beside history."""
        self.slow = False
        self._well = 0.0
        """Towards `WELL`."""
        self._slowest_bytes_per_s = math.inf
        """Of the busy disk while it was called slow; infinite where nothing has ended."""
        self._kept: deque[tuple[float, float]] = deque(maxlen=KEPT)
        """(slowness, weight) of the newest intervals."""

    @property
    def score(self) -> float:
        """0 for well, 1 for slow: what is seen raises and lowers it, time alone does not."""
        return 1.0 - self._well / WELL if self.slow else max(self._scores.values(), default=0.0) / PROOF

    @property
    def relative(self) -> float:
        """Speed over the usual one; 1 for one that is not slow, below `SICK` for one that is."""
        if not self.slow:
            return 1.0
        return min(SLOW, math.exp(-sum(x * w for x, w in self._kept) / sum(w for _, w in self._kept)))

    def take(self, e: Evidence, beside: Sequence[Beside]) -> None:
        """Judge by one more interval, beside peers, history, or both."""
        worst = max(beside, key=lambda each: each.slowness)
        if self.slow:
            self._judge_slow(e, worst)
            return
        self._kept.append((worst.slowness, 1 / worst.noise))
        for each in beside:
            by = type(each.reference)
            self._scores[by] = max(0.0, self._scores.get(by, 0.0) + each.likelier(e))
        if self.score >= 1:
            self._call_slow(e.rates[2])

    def wait(self, seconds: float, usual_s: float) -> None:
        """I/Os are in flight and none has ended for `seconds`, where `usual_s` would have done."""
        if not self.slow and seconds >= FAR * usual_s and self.score + seconds / STALL_S / PROOF >= 1:
            self._kept.clear()
            self._kept.append((math.log(seconds / usual_s), 1.0))
            self._call_slow(math.inf)

    def _call_slow(self, bytes_per_s: float) -> None:
        self.slow, self._well, self._slowest_bytes_per_s = True, 0.0, bytes_per_s
        self._scores.clear()
        # What it was like before it was slow is no measure of it now.
        slow = [each for each in self._kept if each[0] > SHIFT / 2]
        self._kept.clear()
        self._kept.extend(slow)

    def _judge_slow(self, e: Evidence, worst: Beside) -> None:
        slow = worst.slowness > SHIFT / 2
        if slow:
            self._slowest_bytes_per_s = min(self._slowest_bytes_per_s, e.rates[2])
        # A disk that is held by bytes per second serves small I/Os well: these say nothing of it.
        shift = min(SHIFT, slowness(e.at(self._slowest_bytes_per_s), worst.reference) - worst.common)
        if not slow and shift <= SHIFT / 2:
            return
        self._kept.append((worst.slowness, 1 / worst.noise))
        self._well = max(0.0, self._well + min(MOST_WELL, shift / worst.noise * (shift / 2 - worst.slowness)))
        if self._well >= WELL:
            self.slow, self._well = False, 0.0
            self._kept.clear()


class _Interval(NamedTuple):
    evidence: Evidence
    usually: Usually | None
    own: float
    """Slowness beside its history."""
    weight: float
    """1 for a minute or more since the interval before."""


@dataclass
class _Track:
    """One direction of one OST, or of the way to one server."""

    of_class: Class
    test: Suspicion = field(default_factory=Suspicion)
    unread: deque[_Interval] = field(default_factory=lambda: deque(maxlen=UNREAD))
    newest: Evidence | None = None
    """Of those that were judged."""
    of_size: dict[bool, Evidence] = field(default_factory=dict)
    """The newest of small I/Os (True), and of large ones."""
    rates: tuple[float, ...] = ()
    """Of its peers."""
    usually: Usually | None = None
    """Of I/Os as its newest."""
    own_s: float = -math.inf
    own: float = 0.0
    """End of the newest interval beside its history, and its slowness there."""
    by_peers: float = 0.0
    by_itself: float = 0.0
    """Of the newest interval, as far as it counts."""
    suspect: bool = False
    """It is slow, or seems so beside its peers."""

    def show(self, e: Evidence, usually: Usually | None) -> None:
        """An interval that has ended, to be judged."""
        own, weight = 0.0, 0.0
        if usually:
            own, weight = slowness(e.usual, usually), max(0.0, min(1.0, (e.at_s - self.own_s) / MINUTE_S))
            self.own_s, self.own = e.at_s, own
        self.unread.append(_Interval(e, usually, own, weight))

    def next(self, heard_s: float) -> _Interval | None:
        """The oldest that can be judged: what is slower than usual once others have told whether they are, too."""
        if not self.unread:
            return None
        oldest = self.unread[0]
        ready = oldest.own < AS_USUAL or oldest.evidence.at_s <= heard_s or len(self.unread) > 1
        return self.unread.popleft() if ready else None

    def estimate(self) -> SpeedEstimate:
        relative, rates, usually = self.test.relative, self.rates, self.usually
        own, why = 1.0 if usually else None, ""
        if self.test.slow:
            beside, other = "its peers", ""
            if usually:
                itself = f"its own last {_span(usually.hours)}"
                own = math.exp(-self.by_itself)
                other = f", {math.exp(self.by_itself):.1f} times than {itself}"
                if self.by_itself > self.by_peers:
                    own, rates = relative, usually.rates
                    beside, other = itself, f", {math.exp(self.by_peers):.1f} times than its peers"
            why = f"{1 / relative:.1f} times slower than {beside}{other}"
        values = rates[0] * relative, 1 / (rates[1] * relative), relative, self.of_class[1]
        return SpeedEstimate(*values, own, self.test.score, why)


class _Tracks(dict[Side, _Track]):
    """Of all OSTs, or of the ways to all servers: what slows many of them is no fault of each."""

    def __init__(self) -> None:
        self._most: dict[Class, tuple[float, float, float]] = {}
        """Class → (end of the newest interval that was taken in, what most were slower by then, and before)."""

    def relative(self) -> float:
        """Speed of most over what is usual for them."""
        classes = {track.of_class for track in self.values()}
        each = [min(now, before) for of, (_, now, before) in self._most.items() if of in classes]
        slower = max(each, default=0.0)
        return math.exp(-slower) if slower >= AS_USUAL else 1.0

    def common(self, of_class: Class, begin_s: float, servers: Servers) -> float:
        """By how much nearly half of those with I/O since then were slower than usual (logarithm, 0 for not)."""
        recent = {side: track for side, track in self.items() if track.own_s > begin_s}
        same = {side: track for side, track in recent.items() if track.of_class == of_class}
        # A pool on one server: by all that had I/O, of whatever kind.
        by_server = _by_server(same, servers) or _by_server(recent, servers)
        if not by_server:
            return 0.0
        every = [slower for those in by_server.values() for slower in those]
        common = min(_shared(every), _shared([median_low(those) for those in by_server.values()]))
        taken_s, before, _ = self._most.get(of_class, (-math.inf, 0.0, 0.0))
        if begin_s >= taken_s:
            self._most[of_class] = max(track.own_s for track in recent.values()), common, before
        return common

    def as_usual(self, now_s: float, pools: Pools, servers: Servers) -> dict[object, float]:
        """Middle of the logarithms of the times of such I/Os lately, on OSTs that are as usual."""
        times: dict[object, dict[int | str, float]] = {}
        for (name, _), track in self.items():
            e, well = track.newest, track.own < AS_USUAL and not track.suspect
            if well and e and now_s - LIKE_S <= e.at_s == track.own_s and track.of_class[2] is not None:
                times.setdefault(_alike(name, track, e, pools), {})[name] = math.log(e.seconds / e.ios)
        return {
            alike: median_low(of.values())
            for alike, of in times.items()
            if len(of) >= LIKE_OSTS and len({_server(name, servers) for name in of}) >= LIKE_SERVERS
        }


class SlowOstFinder:
    """Finds slow OSTs by the time that their own I/Os took; `update_server` with every report, `estimates` when asked.

    What is compared: of each OST, reads and writes apart, the I/Os that ended between two reports (`evidence`), in
    four ways, so that neither large I/Os, nor small ones, nor a queue count as slowness (`peers`).

    With what: first the newest of its peers, OSTs of the same source, kind and pool; second its own history, what I/Os
    of such a size, with so many in flight, took on it over weeks (`usual`), once it is known for half an hour.

    The score: how many times slower they were, on a logarithmic scale, is noise about 0 for a well disk, wider the
    fewer I/Os there were. Each interval adds how much likelier it is of a disk at a fifth of the speed or less than of
    a well one, never below 0 (a cumulative sum, CUSUM); beside peers and history it has one each, the higher counts.

    Suspected is an OST while its score is above 0; it still counts as equal. Convicted it is at `PROOF`. One interval
    counts for half a proof at most, for less where one stall explains it, and beside peers for a sixth where the OST is
    as fast as it always was; but where each I/O took seconds longer than it should, seconds count for themselves. So do
    those for which I/Os are outstanding and none has ended: they prove without waiting for any to end.

    Acquitted it is by the same test turned round, two intervals at least, on I/Os of a kind that would be slow if it
    still were. Time alone changes nothing, so an idle OST keeps its verdict; mdsd lets a few small objects through to a
    slow one for that.

    No fault of an OST: what nearly half of the OSTs with I/O at that time, and of their servers, were slower than usual
    by (taken off, and said of the system: `common`; what is slower than usual is judged once most others have told);
    being as slow as equal OSTs that are as usual; and waiting where half of all wait. Where requests of all OSTs of a
    server take longer than usual and its disks do not, the way to it is slow, by the same test, and so are its OSTs.

    Learned is what is as usual; what may be of a slow disk counts a twentieth.
    """

    def __init__(self, fs_name: str, usual: Usual | None = None) -> None:
        """`usual`: what is known of each OST from before; it learns."""
        self.usual = Usual() if usual is None else usual
        self._fs_name = fs_name
        self._osts, self._ways = _Tracks(), _Tracks()
        self._intervals, self._requests = Intervals(io_of), Intervals(of_requests)
        self._waits = Waits()
        self._unread: set[tuple[int, bool]] = set()
        self._new_requests: dict[tuple[int, bool], Evidence] = {}
        self._log_bytes_per_s: dict[str, float] = {}
        """Server → mean logarithm of what it moves."""
        self._disk_s: dict[str, float] = {}
        """Server → seconds of its disks for each byte, when its way was judged last."""
        self._hindered: set[str] = set()
        """Servers whose OSTs are slow for their way, until that is well: they do not come and go with each interval."""

    def forget(self, index: int) -> None:
        """The OST's next counters are another server's: nothing is counted from the last ones."""
        self._intervals.forget(index)
        self._requests.forget(index)

    def update_server(self, reports: Sequence[OstReport], received_s: float) -> None:
        """Take in the counters of one server's OSTs; `received_s` is on a clock that only goes on."""
        self.usual.pass_time(received_s)
        kinds = {report.index: report.nonrotational for report in reports}
        ended = set[int]()
        for side, e in self._intervals.of_server(reports, received_s).items():
            index, writes = side
            track, of_class = self._osts.get(side), (writes, e.source, kinds[index])
            if track is None or (track.newest and track.newest.source != e.source):
                # By another source: nothing that was seen before compares.
                track = self._osts[side] = _Track(of_class)
            track.of_class = of_class
            track.show(e, self.usual.expected((self._fs_name, *side), e.usual))
            self._unread.add(side)
            ended.add(index)
        self._new_requests |= self._requests.of_server(reports, received_s)
        for report in reports:
            sharing = [r for r in reports if r.disk == report.disk] if report.disk else [report]
            # Where nothing ended on the whole disk, all that lie on it wait.
            longest = max(sharing, key=lambda r: r.waiting_s)
            waits = report if ended.intersection(r.index for r in sharing) else longest
            wait = Wait(received_s, report.nonrotational, waits.waiting_s, waits.waiting_ios)
            self._waits.note(report.index, wait)

    def common(self) -> float:
        """Speed of most OSTs over what is usual for them, where it is no cause of their own: network, load, new
        firmware, another kind of jobs. 1: as usual.
        """
        return self._osts.relative()

    def estimates(
        self, pools: Pools | None = None, servers: Servers | None = None
    ) -> dict[int, SpeedEstimate]:
        """OST index → estimate. OSTs that never showed enough evidence are absent."""
        pools, servers = pools or {}, servers or {}
        self._waits.forget_silent()
        while self._judge_osts(pools, servers):
            pass
        self._judge_ways(servers)
        self._judge_waiting(pools)
        by_ost: dict[int, SpeedEstimate] = {}
        for side in sorted(self._osts, key=lambda side: not side[1]):
            if self._osts[side].rates and isinstance(index := side[0], int):
                estimate = self._osts[side].estimate()
                if other := by_ost.get(index):
                    worse = estimate if estimate.relative < other.relative else other
                    estimate = worse._replace(score=max(estimate.score, other.score))
                by_ost[index] = estimate
        return self._with_ways(by_ost, servers)

    def _judge_osts(self, pools: Pools, servers: Servers) -> bool:
        """Each OST's oldest interval that was not judged; whether there were any."""
        fresh: dict[Side, _Interval] = {}
        heard_s = self._waits.heard_s()
        for side in list(self._unread):
            track = self._osts[side]
            if interval := track.next(heard_s):
                fresh[side], track.newest = interval, interval.evidence
                track.of_size[track.newest.mean_bytes < peers.SMALL_BYTES] = track.newest
            if not track.unread:
                self._unread.discard(side)
        if self._waits.everywhere or not fresh:
            return bool(fresh)  # what has ended where all stood still says nothing before the others' has
        classes: dict[Class, dict[int, Newest]] = {}
        for (name, _), track in self._osts.items():
            if track.newest and isinstance(name, int):
                known = Newest(track.newest, track.of_size, track.test.slow)
                classes.setdefault(track.of_class, {})[name] = known
        beside: dict[Side, OfPeers] = {}
        for (writes, *_), of_class in classes.items():
            if new := {i for i in of_class if (i, writes) in fresh}:
                of_peers = peers.of_peers(of_class, new, pools, servers)
                beside |= {(i, writes): of_ost for i, of_ost in of_peers.items()}
        self._judge(self._osts, fresh, beside, pools, servers)
        return True

    def _judge(
        self,
        tracks: _Tracks,
        fresh: Mapping[Side, _Interval],
        beside: Mapping[Side, OfPeers],
        pools: Pools,
        servers: Servers,
    ) -> None:
        begins = {
            side: (tracks[side].of_class, interval.evidence.begin_s // COMMON_S * COMMON_S)
            for side, interval in fresh.items()
            if interval.usually
        }
        commons = {begin: tracks.common(*begin, servers) for begin in dict.fromkeys(begins.values())}
        slower_s = [interval.evidence.at_s for interval in fresh.values() if interval.own >= AS_USUAL]
        as_usual = tracks.as_usual(min(slower_s), pools, servers) if slower_s else {}
        for side, (e, usually, own, weight) in fresh.items():
            track, of_peers, comparisons = tracks[side], beside.get(side), list[Beside]()
            common = commons[begins[side]] if usually else 0.0
            track.by_itself = max(0.0, own - common)
            if track.by_itself >= AS_USUAL:
                alike = as_usual.get(_alike(side[0], track, e, pools), -math.inf)
                slower = math.log(e.seconds / e.ios) - alike
                track.by_itself = max(0.0, slower) if slower < LIKE else track.by_itself
            track.by_peers = slowness(e, of_peers) if of_peers else 0.0
            if common > AS_USUAL:  # explains it beside peers too
                track.by_peers = min(track.by_peers, max(0.0, own - common))
            if usually:
                track.usually, noise = usually, usually.noise(e.ios) + common**2
                comparisons.append(Beside(track.by_itself, noise, usually, common, weight=weight))
            if of_peers and of_peers.osts:
                most = DOUBTED if usually and own < AS_USUAL else math.inf
                comparisons.append(Beside(track.by_peers, of_peers.noise(e.ios), of_peers, most=most))
            if comparisons:
                track.test.take(e, comparisons)
            track.rates = of_peers.rates if of_peers else e.rates
            track.suspect = track.test.slow or track.by_peers > AS_USUAL
            well = track.by_itself < AS_USUAL and not track.suspect
            learned = SUSPECT if not well else 1.0 if own < AS_USUAL else SHARED
            self.usual.learn((self._fs_name, *side), e.usual, learned)

    def _judge_ways(self, servers: Servers) -> None:
        """To servers, by the time of requests without the wait for the disk; in flight are the I/Os on their disks."""
        requests: dict[tuple[str, float], dict[tuple[int, bool], Evidence]] = {}
        for (index, writes), e in self._new_requests.items():
            if index in servers:
                requests.setdefault((servers[index], e.at_s), {})[index, writes] = e
        self._new_requests.clear()
        for (server, at_s), parts in requests.items():
            whole = together(list(parts.values()))
            tracks = [track for side in parts if (track := self._osts.get(side))]
            slower = [track.own for track in tracks if track.own_s == at_s]
            if at_s <= whole.begin_s or (slower and median_low(slower) > AS_USUAL):
                continue  # slow disks make requests wait, too
            rate = math.log(whole.bytes / (at_s - whole.begin_s))
            usual = self._log_bytes_per_s.get(server, rate)
            self._log_bytes_per_s[server] = usual + REMEMBERED * (rate - usual)
            if rate - usual > math.log(BUSY_TIMES):
                continue
            on_disks = [track.newest for track in tracks if track.newest and track.newest.at_s == at_s]
            disks = together(on_disks) if on_disks else None
            self._disk_s[server] = disks.seconds / disks.bytes if disks else 0.0
            flight = max(1.0, disks.in_flight) if disks else 1.0
            for writes in (False, True):
                grown = [e for (_, of_writes), e in parts.items() if of_writes == writes]
                if sum(e.ios for e in grown) >= MIN_REQUESTS:
                    e = together(grown)._replace(in_flight=flight, at_least=flight)
                    way = self._ways.setdefault((server, writes), _Track((writes, WAY, None)))
                    way.show(e, self.usual.expected((self._fs_name, server, writes), e))
        heard_s = self._waits.heard_s()
        fresh = {side: interval for side, way in self._ways.items() if (interval := way.next(heard_s))}
        if fresh:
            self._judge(self._ways, fresh, {}, {}, {})

    def _with_ways(self, by_ost: dict[int, SpeedEstimate], servers: Servers) -> dict[int, SpeedEstimate]:
        behind: dict[str, SpeedEstimate] = {}
        """Server → of an OST there, by the worse direction."""
        for side, way in self._ways.items():
            if not way.test.slow or not way.usually:
                continue
            server, times, usual_s = str(side[0]), 1 / way.test.relative, 1 / way.usually.rates[0]
            slowed_s = self._disk_s[server] + times * usual_s
            relative = (self._disk_s[server] + usual_s) / slowed_s
            if relative < NOTICED or server in self._hindered:
                relative = min(NOTICED, relative)
                span = _span(way.usually.hours)
                why = f"requests to {server} take {times:.1f} times as long as in its own last {span}"
                why += ", its disks do not: network?"
                values = 1 / slowed_s, slowed_s, relative, "obdfilter", relative, way.test.score, why
                estimate = SpeedEstimate(*values)
                behind[server] = min(behind.get(server, estimate), estimate, key=lambda each: each.relative)
        self._hindered = set(behind)
        for index, of_disk in by_ost.items():
            slowed = behind.get(servers.get(index, ""))
            if slowed and slowed.relative < of_disk.relative:
                by_ost[index] = slowed._replace(write_latency_s=of_disk.write_latency_s / slowed.relative)
        return by_ost

    def _judge_waiting(self, pools: Pools) -> None:
        """OSTs on which nothing ends, by how long one write of their peers takes; without peers, one of their own."""
        waiting = self._waits.settled()
        for index, wait in waiting.items():
            mine, track = set(pools.get(index, ())), self._osts.get((index, True))
            rates = [
                other.of_size[min(other.of_size)].usual.rates
                for (name, writes), other in self._osts.items()
                if writes
                and other.of_size
                and name not in waiting
                and other.of_class[2] == wait.kind
                and (not mine or (isinstance(name, int) and mine.intersection(pools.get(name, ()))))
            ]
            if len(rates) < 2:
                rates = [track.usually.rates] if track and track.usually else []
            if rates:
                track = self._osts.setdefault((index, True), _Track((True, "diskstats", wait.kind)))
                track.rates = track.rates or median_high(rates)
                one_s, queue_s = (median_high([1 / each[measure] for each in rates]) for measure in (3, 1))
                track.test.wait(wait.seconds, max(LEAST_WAIT_S, queue_s, one_s * wait.ios))


def _span(hours: float) -> str:
    """`14 days`, `3 hours`."""
    return counted(round(hours / 24), "day") if hours >= 48 else counted(max(1, round(hours)), "hour")


def _alike(name: int | str, track: _Track, e: Evidence, pools: Pools) -> object:
    """Of which the times of two OSTs' I/Os compare."""
    return track.of_class, cell_of(e.usual), frozenset(pools.get(name, ()) if isinstance(name, int) else ())


def _by_server(tracks: Mapping[Side, _Track], servers: Servers) -> dict[str, list[float]]:
    """Server → by how much each was slower than usual; nothing where too few tell what is common to all."""
    by_server: dict[str, list[float]] = {}
    for (name, _), track in tracks.items():
        by_server.setdefault(_server(name, servers), []).append(track.own)
    least = COMMON_SERVERS if len(set(servers.values())) >= COMMON_SERVERS else 1
    return by_server if len(by_server) >= least and len(tracks) >= COMMON_OSTS else {}


def _shared(slower: Collection[float]) -> float:
    """By what `COMMON_SHARE` of them are slower."""
    return sorted(slower)[int((1 - COMMON_SHARE) * len(slower))]


def _server(name: int | str, servers: Servers) -> str:
    return name if isinstance(name, str) else servers.get(name, str(name))
