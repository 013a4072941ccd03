"""Whether an OST is slower than it usually is itself: the test of `tarazu.stats.slowness` beside its own history.

What is usual for such I/Os on this OST (`tarazu.stats.usual`: of their size, with so many in flight) takes the place
of the peers, and nothing that explains a time beside peers makes it slow here either: large I/Os, small ones, a queue.

What makes many slower in the same time is not their disks: a network, a load that mixes more streams, new firmware, a
job of another kind. So an interval is judged once `HEARD` of all OSTs have reported since, by how much slower it was
than usual beyond what nearly half of the OSTs with I/O in that time were, counted by OSTs and by servers. One OST of
two, two of eight, a server or a rack are sick; when more are slow at once, that is said of the system (`common`), and
none of them is called slow for it until it was well.

As slow as equal disks that are as usual is no sickness either, where I/Os of the same size, with as many in flight, on
such disks of the same pool say so: a disk that was faster for some days than its kind, or new firmware that most have.

Learned is what is as usual; what is not counts little (`SUSPECT`), so that no slow disk is usual within weeks, and
what all OSTs share for more (`SHARED`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low
from typing import NamedTuple, Protocol

from tarazu.stats.evidence import Evidence
from tarazu.stats.slowness import APART, VARIATION, Shown, Slowness
from tarazu.stats.usual import Direction, Usual, Usually, cell_of

SPAN_S, LONGEST_GAP_S = 55.0, 120.0
"""Intervals are put together until they last so long: what one OST does varies from minute to minute. Not across such
a gap."""
MOST_OTHERS = 2.0
"""Reads that wait behind so much longer writes, or writes behind reads, tell of these; unless they are quick."""
HEARD = 0.75
"""So many of the OSTs must have reported since an interval ended."""
COMMON_S = 10.0
"""What most were like is counted anew for each such step of the time from which an interval is."""
COMMON_OSTS, COMMON_SERVERS = 4, 2
"""Fewer OSTs, or all of one server of several, tell of no cause that is common to all."""
COMMON_SHARE = 0.45
"""What so many are slower by is common to all."""
MOST_SLOW = 0.4
"""Of the OSTs that are judged by their history; more at once are too many to be true, until each is well again."""
AS_USUAL = math.log(2)
"""Less slow than so: learned in full."""
LIKE, LIKE_OSTS, LIKE_SERVERS, LIKE_S = math.log(1.5), 3, 2, 600.0
"""So little slower than so many equal OSTs that are as usual is no sickness; they had such I/Os so lately."""
LEAST_WAIT_S = 0.1
"""An I/O that is outstanding is expected to take this long at least."""
SUSPECT, SHARED = 0.05, 0.25
"""Weights of other intervals."""

Side = tuple[int | str, bool]
"""(OST index or a server's name, True for writes)."""
Class = tuple[bool, str, bool | None]
"""(True for writes, source, kind of disk)."""


Pools = Mapping[int, Sequence[str]]
"""OST index → its pools."""
_Alike = tuple[Class, int, frozenset[str]]
"""(class, cell of `Usual`, pools)."""


class Share(Protocol):
    """Speed of some I/Os over the usual one, as far as nothing explains it, at most 1."""

    def __call__(self, e: Evidence, usually: Usually, bytes_per_s: float | None = None) -> float:
        """`bytes_per_s`: as if the disk moved so much while it is busy."""
        ...


class _Beside(NamedTuple):
    """One interval beside what is usual."""

    evidence: Evidence
    of_class: Class
    usually: Usually
    slowness: float
    """Logarithm of how many times slower than usual, as far as nothing explains it."""

    @property
    def log_s(self) -> float:
        """Logarithm of an I/O's mean time."""
        return math.log(self.evidence.seconds / self.evidence.ios)


class _Own:
    """One direction of one OST."""

    __slots__ = ("at_s", "newest", "of_class", "pending", "state", "suspect", "usually")

    def __init__(self, of_class: Class) -> None:
        self.of_class = of_class
        self.state = Slowness()
        self.at_s = -math.inf
        """End of its newest interval."""
        self.pending: list[_Beside] = []
        self.newest: _Beside | None = None
        self.suspect = False
        """Its peers say that it is slow, or seems so."""
        self.usually: Usually | None = None


class OwnHistory:
    """Of one file system."""

    def __init__(self, fs_name: str, usual: Usual, share: Share) -> None:
        self._fs_name, self._usual, self._share = fs_name, usual, share
        self._sides: dict[Side, _Own] = {}
        self._gathered: dict[Side, Evidence] = {}
        """What is too short to be judged alone."""
        self._pending: set[Side] = set()
        self._excused: set[Side] = set()
        """Slow while too many were, and not well since."""
        self._newest: dict[Class, dict[int | str, tuple[float, float]]] = {}
        """Class → OST index → (end of its newest interval, its slowness)."""
        self._shared: dict[Class, float] = {}
        self._common: dict[Class, tuple[float, Slowness]] = {}
        """Class → (end of the newest interval that was taken in, whether most are slower than usual)."""

    def show(self, side: Side, e: Evidence, of_class: Class, suspect: bool) -> None:
        """An interval that has ended; `suspect`: its peers say that it may be slow."""
        gathered = self._gathered.pop(side, None)
        if (
            gathered
            and gathered.source == e.source
            and gathered.at_s <= e.at_s <= gathered.at_s + LONGEST_GAP_S
        ):
            e = together(gathered, e)
        if e.at_s - e.begin_s < SPAN_S:
            self._gathered[side] = e
            return
        key = self._fs_name, *side
        if e.others_s > MOST_OTHERS * e.seconds:
            own = self._sides.get(side)
            if not (own and own.state.slow and self._quick(key, e)):
                return
            e = _by_itself(e)
        e = e.at_any_time
        usually = self._usual.expected(key, e)
        if usually is None:
            self._usual.learn(key, e, SUSPECT if suspect else 1.0)
            return
        own = self._sides.get(side)
        if own is None or own.of_class != of_class or own.at_s > e.at_s:
            # Another source, another disk, or a clock that was set back: nothing compares.
            self.forget(side)
            own = self._sides[side] = _Own(of_class)
        own.suspect, own.at_s = suspect, e.at_s
        beside = _Beside(e, of_class, usually, -math.log(self._share(e, usually)))
        self._newest.setdefault(of_class, {})[side[0]] = e.at_s, beside.slowness
        own.pending.append(beside)
        own.newest = beside
        self._pending.add(side)

    def _quick(self, key: Direction, e: Evidence) -> bool:
        """Whether these I/Os took no longer than usual though they waited behind others: a slow disk's would have."""
        alone = _by_itself(e)
        usually = self._usual.expected(key, alone)
        return usually is not None and -math.log(self._share(alone, usually)) < AS_USUAL

    def slowness(self, side: Side, e: Evidence) -> float | None:
        """Logarithm of how many times slower than usual these I/Os were; None where too little is known."""
        e = e.at_any_time
        usually = self._usual.expected((self._fs_name, *side), e)
        return -math.log(self._share(e, usually)) if usually else None

    def shared(self, of_class: Class) -> float:
        """By how much half of the OSTs were slower than usual when that was counted last (logarithm)."""
        return self._shared.get(of_class, 0.0)

    def settle(self, heard_s: float, servers: Mapping[int, str], pools: Pools | None = None) -> None:
        """Judge what can be judged. `heard_s`: since then `HEARD` of all OSTs have reported; `servers`, `pools`: OST
        index → OSS, its pools.
        """
        commons: dict[tuple[Class, float], float] = {}
        others: dict[_Alike, float] | None = None
        for side in list(self._pending):
            own = self._sides[side]
            while own.pending and (own.pending[0].evidence.at_s <= heard_s or len(own.pending) > 1):
                beside = own.pending.pop(0)
                known = beside.of_class, beside.evidence.begin_s // COMMON_S * COMMON_S
                if known not in commons:
                    commons[known] = self._common_slowness(*known, servers)
                slower = math.inf
                if beside.slowness >= AS_USUAL:
                    others = self._as_usual(heard_s, servers, pools or {}) if others is None else others
                    slower = beside.log_s - others.get(_alike(side[0], beside, pools or {}), -math.inf)
                self._take(side, own, beside, commons[known], slower if slower < LIKE else math.inf)
            if not own.pending:
                self._pending.discard(side)
        self._excuse(servers)

    def _common_slowness(self, of_class: Class, begin_s: float, servers: Mapping[int, str]) -> float:
        """By how much half of the OSTs with I/O since then were slower than usual (logarithm, 0 for not)."""
        self._shared[of_class] = 0.0
        by_server, ends_s = self._since(begin_s, (of_class,), servers)
        if not _enough(by_server, servers):
            # A pool on one server: by all that had I/O, of whatever kind.
            by_server, ends_s = self._since(begin_s, self._newest, servers)
        if not _enough(by_server, servers):
            return 0.0
        every = [s for of in by_server.values() for s in of]
        common = min(_shared_by(every), _shared_by([median_low(of) for of in by_server.values()]))
        self._shared[of_class] = common
        taken_s, state = self._common.get(of_class, (-math.inf, Slowness()))
        if begin_s >= taken_s or ends_s < taken_s:
            state.take(Shown(common, 1e6, len(every), 1e6, 0.0, math.inf), 0.0, APART**2)
            self._common[of_class] = ends_s, state
        return common

    def _since(
        self, begin_s: float, classes: Iterable[Class], servers: Mapping[int, str]
    ) -> tuple[dict[str, list[float]], float]:
        """(server → slowness of its OSTs with I/O since then, when the last of these ended)."""
        by_server: dict[str, list[float]] = {}
        ends_s = begin_s
        for of_class in classes:
            for index, (at_s, slowness) in self._newest.get(of_class, {}).items():
                if at_s > begin_s:
                    by_server.setdefault(_server(index, servers), []).append(slowness)
                    ends_s = max(ends_s, at_s)
        return by_server, ends_s

    def _as_usual(self, heard_s: float, servers: Mapping[int, str], of_pools: Pools) -> dict[_Alike, float]:
        """Middle of the logarithms of the times of such I/Os lately, on OSTs that are as usual."""
        found: dict[_Alike, dict[int, float]] = {}
        for (index, _), own in self._sides.items():
            beside = own.newest
            if not beside or beside.of_class[2] is None or isinstance(index, str):
                continue
            recent = beside.evidence.at_s >= heard_s - LIKE_S
            if recent and beside.slowness < AS_USUAL and not own.suspect and not own.state.slow:
                found.setdefault(_alike(index, beside, of_pools), {})[index] = beside.log_s
        return {
            alike: median_low(of.values())
            for alike, of in found.items()
            if len(of) >= LIKE_OSTS and len({_server(i, servers) for i in of}) >= LIKE_SERVERS
        }

    def _take(self, side: Side, own: _Own, beside: _Beside, common: float, slower: float) -> None:
        """`common`: what is taken off; `slower`: than equal OSTs that are as usual; infinite: much, or not known."""
        e, usually = beside.evidence, beside.usually
        of_bytes, of_ios = usually.rates[:2]
        expected_s = max(e.mean_bytes / of_bytes, 1 / of_ios) * math.exp(common)
        slowness = max(0.0, min(beside.slowness - common, slower))
        shown = Shown(
            slowness,
            e.ios,
            int(usually.episodes),
            usually.episodes,
            (e.seconds / e.ios - expected_s) / max(1.0, e.in_flight),
            e.rates[2],
        )
        still = self._share(e, usually, own.state.slowest_bytes_per_s) * math.exp(common)
        own.state.take(shown, min(1.0, still), _noise(e, usually) + common**2)
        own.usually = usually
        usual = slowness < AS_USUAL and not own.suspect and not own.state.slow
        weight = (1.0 if beside.slowness < AS_USUAL else SHARED) if usual else SUSPECT
        self._usual.learn((self._fs_name, *side), e, weight)

    def wait(self, side: Side, waiting_s: float, waiting_ios: int) -> None:
        """I/Os are in flight and none has ended, on an OST without peers that could say how long they take."""
        own = self._sides.get(side)
        if own and own.usually:
            _, of_ios, _, busy_ios = own.usually.rates
            own.state.wait(waiting_s, max(LEAST_WAIT_S, 1 / of_ios, waiting_ios / busy_ios))

    def newest(self, side: Side) -> tuple[float, float]:
        """(when its newest interval ended, logarithm of how many times slower than usual it was); (-inf, 0): none."""
        own = self._sides.get(side)
        return self._newest[own.of_class][side[0]] if own else (-math.inf, 0.0)

    def of(self, side: Side) -> tuple[Slowness, Usually] | None:
        """(how it stands beside its own history, what is usual for it); None: too little is known of it."""
        own = self._sides.get(side)
        if own is None or own.usually is None:
            return None
        return (Slowness() if side in self._excused else own.state), own.usually

    def slow(self) -> list[Side]:
        """What is slow by its own history."""
        return [side for side, own in self._sides.items() if own.state.slow and side not in self._excused]

    def forget(self, side: Side) -> None:
        """What was seen of it does not compare with what comes."""
        self._gathered.pop(side, None)
        self._excused.discard(side)
        if own := self._sides.pop(side, None):
            self._newest[own.of_class].pop(side[0], None)
        self._pending.discard(side)

    def common(self) -> float:
        """Speed of most OSTs over what is usual for them; 1: as usual."""
        if self._excused:
            return median_low([self._sides[side].state.relative for side in self._excused])
        return min((state.relative for _, state in self._common.values()), default=1.0)

    def _excuse(self, servers: Mapping[int, str]) -> None:
        """Where so many are slow that this is not to be believed of each, none is; each stays so until it is well."""
        slow = {side for side, own in self._sides.items() if own.state.slow}
        self._excused &= slow
        osts = {index for index, _ in slow}
        if len(osts) < COMMON_OSTS or len({_server(i, servers) for i in osts}) < COMMON_SERVERS:
            return
        if len(osts) > MOST_SLOW * len({index for (index, _), own in self._sides.items() if own.usually}):
            self._excused |= slow


def together(one: Evidence, other: Evidence) -> Evidence:
    """Two intervals as one."""
    seconds = one.seconds + other.seconds
    flight = (one.in_flight * one.seconds + other.in_flight * other.seconds) / seconds
    ios, size = one.ios + other.ios, one.bytes + other.bytes
    alone = (one.alone * one.seconds + other.alone * other.seconds) / seconds
    others_s = one.others_s + other.others_s
    return Evidence(one.begin_s, other.at_s, other.source, ios, size, seconds, flight, alone, others_s)


def _by_itself(e: Evidence) -> Evidence:
    """The same, but nothing of the other direction excuses its times."""
    return e._replace(in_flight=e.alone or e.in_flight, alone=0.0, others_s=0.0)


def _alike(index: int | str, beside: _Beside, pools: Pools) -> _Alike:
    of = pools.get(index, ()) if isinstance(index, int) else ()
    return beside.of_class, cell_of(beside.evidence), frozenset(of)


def _shared_by(slowness: Sequence[float]) -> float:
    """By what `COMMON_SHARE` of them are slower."""
    return sorted(slowness)[int((1 - COMMON_SHARE) * len(slowness))]


def _enough(by_server: Mapping[str, list[float]], servers: Mapping[int, str]) -> bool:
    """To tell what is common to all."""
    least = COMMON_SERVERS if len(set(servers.values())) >= COMMON_SERVERS else 1
    return len(by_server) >= least and sum(map(len, by_server.values())) >= COMMON_OSTS


def _server(of: int | str, servers: Mapping[int, str]) -> str:
    return of if isinstance(of, str) else servers.get(of, str(of))


def _noise(e: Evidence, usually: Usually) -> float:
    """Variance of how the logarithm of an interval's mean time compares with what is usual, for a well OST."""
    of_ios = math.log1p(VARIATION**2 / max(1.0, e.ios))
    young = APART**2 / max(usually.hours, 0.1)
    return max(APART**2 + of_ios, usually.variance) * (1 + 1 / usually.episodes) + young
