"""How long I/Os like an OST's take on OSTs that can be compared with it, and how much slower its own are.

Comparable are OSTs that were measured by the same source, of the same kind and pool. A long time has three causes: a
slow disk, large I/Os, and many at once. So there are four measures, and an OST is slow only as far as none of them
explains it:

    bytes per second of I/O time               allows for large I/Os
    I/Os per second of I/O time                allows for small ones, whose time is that of the request
    both, times the mean number in flight      allow for a queue: by Little's law, the throughput of the busy disk

Of each the usual value is the upper median, unless the values fall into two clouds with a gap between them:

- many OSTs on several servers in the slow cloud: these are two kinds of hardware (flash and disks) that nobody told us
  of, and each OST is compared within its cloud;
- a few slow OSTs, or OSTs of one server only, however many: these are sick, and compared with the fast cloud.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from tarazu.stats.evidence import APART, Evidence, chance, noise
from tarazu.stats.service import DISK_SOURCES
from tarazu.units import KIB

GAP = 3.0
"""Neighbouring values (sorted) that are further apart separate two clouds."""
CLASS_OSTS = 4
CLASS_SERVERS = 2
CLASS_SHARE = 0.25
"""A slow cloud is hardware from so many OSTs, on so many servers, that are such a share of those compared."""
FAST_OSTS = 2
FAST_SHARE = 0.25
"""A fast cloud is what the others are compared with from so many OSTs, and such a share, not an odd one."""
CERTAIN = 20.0
"""Beyond such a gap one fast OST will do."""
SMALL_BYTES = 32 * KIB
"""Mean size of I/Os, below which their time is hardly that of data: journals, small files, random reads."""
SEEK_S = 0.01
"""What positioning a disk's head may add to an I/O that is much smaller than those it is compared with."""
SYNC = 2.0
"""Times longer that small I/Os may take whose writers wait for the disk's own cache, which peers' need not."""


class Reference(Protocol):
    """What I/Os like an OST's usually are."""

    @property
    def rates(self) -> tuple[float, ...]:
        """As those of `Evidence`."""

    @property
    def mean_bytes(self) -> float: ...


class OfPeers(NamedTuple):
    """Among its peers."""

    rates: tuple[float, ...]
    mean_bytes: float
    osts: int
    """That say so, of those that are not slow."""
    ios: int

    def noise(self, ios: float) -> float:
        """Variance of the slowness of a well OST's interval with so many I/Os; of a median of so many."""
        return noise(ios) + APART**2 * math.pi / 2 / max(1, self.osts) + chance(self.ios)


class Newest(NamedTuple):
    """What is known of one OST's I/Os in one direction."""

    newest: Evidence
    of_size: Mapping[bool, Evidence]
    """The newest of small I/Os (True), and of large ones."""
    slow: bool


def slowness(e: Evidence, expected: Reference) -> float:
    """Logarithm of how many times slower they were than expected, as far as nothing explains it; 0: not slower."""
    # A much smaller I/O may take a seek more than those it is compared with.
    seek_s = SEEK_S if e.source in DISK_SOURCES and e.mean_bytes < expected.mean_bytes / 4 else 0.0
    own_bytes, own_ios, busy_bytes, busy_ios = e.rates
    rates = expected.rates
    share = max(
        own_bytes / rates[0],
        own_ios * (1 / rates[1] + seek_s),
        busy_bytes / rates[2],
        busy_ios * (1 / rates[3] + seek_s),
    )
    if e.mean_bytes < SMALL_BYTES:
        share *= SYNC
    return max(0.0, -math.log(share)) if share > 0 else math.inf


def of_peers(
    known: Mapping[int, Newest],
    fresh: Collection[int],
    pools: Mapping[int, Sequence[str]],
    servers: Mapping[int, str],
) -> dict[int, OfPeers]:
    """Fresh OST → what is usual, in the smallest set that it belongs to: a pool of flash, not one of all OSTs. Of the
    newest I/Os of all peers, and of those that are small, or large, as its own, whichever excuse less.
    """
    newest = {i: of.newest for i, of in known.items()}
    expected: dict[int, OfPeers] = {}
    for group in sorted(groups(newest, pools), key=len):
        mine = [i for i in group if i in fresh and i not in expected]
        if not mine:
            continue
        sets = [{i: newest[i] for i in group}]
        for small in (False, True):
            sets.append({i: e for i in group if (e := known[i].of_size.get(small))})
        for of in sets:
            here = [i for i in mine if of.get(i) is newest[i]] if len(of) > 1 else []
            for i, usual in _usual(of, here, known, servers):
                if i not in expected or slowness(newest[i], usual) > slowness(newest[i], expected[i]):
                    expected[i] = usual
    return expected


def _usual(
    of: Mapping[int, Evidence], here: Collection[int], known: Mapping[int, Newest], servers: Mapping[int, str]
) -> Iterator[tuple[int, OfPeers]]:
    """What is usual among `of`, for those `here`."""
    if not here:
        return
    rates = {i: e.usual.rates for i, e in of.items()}
    by_rate = [references({i: each[r] for i, each in rates.items()}, servers) for r in range(4)]
    sizes = references({i: e.mean_bytes for i, e in of.items()}, servers)
    well = {i: e.ios for i, e in of.items() if not known[i].slow}
    ios = sum(well.values())
    for i in here:
        others = len(well) - (i in well), ios - well.get(i, 0)
        yield i, OfPeers(tuple(each[i] for each in by_rate), sizes[i], *others)


def groups(osts: Iterable[int], pools: Mapping[int, Sequence[str]]) -> list[list[int]]:
    """Sets of at least two OSTs that are compared: those of each pool, those in no pool.

    An OST that is the only one in each of its sets is compared with all.
    """
    every = sorted(osts)
    members: dict[str, list[int]] = {}
    for ost in every:
        for pool in pools.get(ost, ()) or ("",):
            members.setdefault(pool, []).append(ost)
    sets = [g for g in members.values() if len(g) > 1]
    if len(every) > 1 and {o for g in sets for o in g} != set(every):
        sets.append(every)
    return sets


def references(values: Mapping[int, float], servers: Mapping[int, str]) -> dict[int, float]:
    """OST → the value that its own is compared with. Values are above 0; `servers`: OST → OSS."""
    order = sorted(values, key=values.__getitem__)
    count = len(order)
    ascending = [values[o] for o in order]
    gaps = [(high / low, at) for at, (low, high) in enumerate(pairwise(ascending), 1) if high >= GAP * low]
    for gap, at in sorted(gaps, reverse=True):
        slow, fast = order[:at], {o: values[o] for o in order[at:]}
        if _is_class(slow, count, servers):
            return references({o: values[o] for o in slow}, servers) | references(fast, servers)
        if len(fast) >= max(FAST_OSTS if gap < CERTAIN else 1, FAST_SHARE * count):
            usual = references(fast, servers)
            return dict.fromkeys(slow, min(usual.values())) | usual
    return dict.fromkeys(order, ascending[count // 2]) if order else {}


def _is_class(osts: Sequence[int], compared: int, servers: Mapping[int, str]) -> bool:
    enough = len(osts) >= max(CLASS_OSTS, CLASS_SHARE * compared)
    return enough and len({servers.get(o, str(o)) for o in osts}) >= CLASS_SERVERS
