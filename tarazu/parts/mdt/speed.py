"""How fast an MDT is beside the others of its file system, from `md_stats`.

`md_stats` says how long an operation took on the server. That depends on which operation it is, so each is compared
with the same one elsewhere, and on how much else is done, so MDTs are compared at like load alone: unlike are two of
which one both made more than `LIKE` times as many operations a second and had more than `LIKE` times as many in
service (Little's law: their time over that of the interval). A slow MDT makes fewer, and has more in service.

Not compared are operations in which two MDTs may take part: `mkdir` in a directory on another MDT takes several times
as long on an equal one (6 and 57 ms on a 2.17 with two MDTs), and so may `rmdir`, `rename`, `link`, `migrate`; nor
those whose time is that of data (`read`, `write`, `readpage`, `sync`).

One interval decides nothing: the median of the last `KEPT` in which there was enough to compare does. Operations that
wait for one another (many creates in one directory) look as those of a slow MDT do.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest
from statistics import median
from typing import NamedTuple

from tarazu.parts.mdt.ossd import CREATES
from tarazu.stats.peers import references
from tarazu.units import counted

COMPARED = ("open", "close", "mknod", "unlink", "getattr", "setattr", "getxattr", "setxattr")
LIKE = 4.0
LEAST_OF_KIND = 10
"""Operations of one kind in an interval of which the mean is compared."""
LEAST = 50
"""All together."""
KEPT, NEEDED = 5, 2
"""Intervals of which the median is taken, and with fewer of which nothing is said."""
KEPT_S = 1800.0
"""So long what was seen holds, while there is nothing newer."""
MOST_PEERS = 16
"""Those whose rates are nearest."""

SINGLE = "there is no other MDT to compare it with"
UNTIMED = "its server does not time operations"
IDLE = f"it makes fewer than {LEAST} operations an interval that can be compared"
UNLIKE = "no other MDT is under a like load"
NOT_YET = "not seen in enough intervals yet"


class Did(NamedTuple):
    """What an MDT did between two reports of its server."""

    received_s: float
    seconds: float
    rows: Mapping[str, tuple[int, int]]
    """Operation → how many, their time in microseconds; those of which there was none are left out."""

    operations: int
    in_service: float
    """Mean number at a time."""

    @property
    def creates(self) -> tuple[int, int]:
        """Files and directories made, and their time in microseconds."""
        rows = [self.rows.get(name, (0, 0)) for name in CREATES]
        return sum(count for count, _ in rows), sum(usecs for _, usecs in rows)


def did(received_s: float, seconds: float, rows: Mapping[str, tuple[int, int]]) -> Did:
    """With what its rows come to."""
    usecs = sum(usecs for _, usecs in rows.values())
    return Did(received_s, seconds, rows, sum(count for count, _ in rows.values()), usecs / 1e6 / seconds)


class Compared(NamedTuple):
    share: float | None
    """Speed over its peers'; None: `why`."""
    why: str


class Judged(NamedTuple):
    """What is known of one MDT's speed."""

    shares: tuple[tuple[float, float], ...] = ()
    """(when, its speed over its peers') of the last intervals in which it could be compared."""
    newest: str = NOT_YET
    """Of the newest interval: with what it was compared, or why not."""

    def take(self, at_s: float, found: Compared) -> Judged:
        shares = self.shares if found.share is None else (*self.shares[-KEPT + 1 :], (at_s, found.share))
        return Judged(shares, found.why)

    def now(self, now: float) -> Compared:
        shares = [share for at_s, share in self.shares if now - at_s <= KEPT_S]
        if len(shares) < NEEDED:
            return Compared(None, self.newest if not shares else NOT_YET)
        return Compared(median(shares), f"the median of {len(shares)} intervals; the newest: {self.newest}")


def compare(index: int, of: Mapping[int, Did], servers: Mapping[int, str]) -> Compared:
    """The MDT beside the others in their newest intervals. `servers`: MDT → its server."""
    own = of[index]
    if len(of) < 2:
        return Compared(None, SINGLE)
    if own.operations and not own.in_service:
        return Compared(None, UNTIMED)
    kinds = [name for name in COMPARED if _enough(own, name)]
    if sum(own.rows[name][0] for name in kinds) < LEAST:
        return Compared(None, IDLE)
    peers = {i: did for i, did in of.items() if i != index and _like(own, did)}
    if len(peers) > MOST_PEERS:
        rate = own.operations / own.seconds
        near = nsmallest(MOST_PEERS, peers, key=lambda i: abs(peers[i].operations / peers[i].seconds - rate))
        peers = {i: peers[i] for i in near}
    expected = taken = 0.0
    count, beside = 0, set()
    for name in kinds:
        with_it = {index: own} | {i: did for i, did in peers.items() if _enough(did, name)}
        if len(with_it) > 1:
            speeds = {i: did.rows[name][0] / did.rows[name][1] for i, did in with_it.items()}
            expected += own.rows[name][0] / references(speeds, servers)[index]
            taken += own.rows[name][1]
            count += own.rows[name][0]
            beside |= with_it.keys() - {index}
    if count < LEAST:
        return Compared(None, UNLIKE)
    return Compared(
        expected / taken, f"{counted(count, 'operation')} beside {counted(len(beside), 'MDT')} at like load"
    )


def _enough(did: Did, name: str) -> bool:
    count, usecs = did.rows.get(name, (0, 0))
    return count >= LEAST_OF_KIND and usecs > 0


def _like(one: Did, other: Did) -> bool:
    rate, other_rate = one.operations / one.seconds, other.operations / other.seconds
    more = rate > LIKE * other_rate and one.in_service > LIKE * other.in_service
    less = other_rate > LIKE * rate and other.in_service > LIKE * one.in_service
    return not (more or less)
