"""Whether an OST is slow: a sequential test on the times of its I/Os beside those of its peers.

How many times slower than its peers' an OST's I/Os of one interval were, on a logarithmic scale, is noise about 0
for a well disk, wider the fewer I/Os there were. The test adds up, interval by interval, how much likelier what was
seen is of a disk at a fifth of the speed or less than of a well one, never below 0 (a cumulative sum, CUSUM), and
calls the OST slow at `PROOF`. Any disk may stall now and then: an interval counts for half a proof at most, and for
less where a stall explains it, unless each I/O took seconds longer than it should. The time for which I/Os are
outstanding and none has ended proves without waiting for any to end.

What is slow is well again by the same test turned round: on I/Os of a kind that would be slow if it still were. Time
alone changes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from tarazu.ost_state import SICK

SHIFT = math.log(5)
"""The slowness that is tested for; at less than its root, 1/2.2, time makes no OST slow."""
VARIATION = 1.5
"""Of the times of single I/Os on a busy healthy disk: standard deviation over mean (captured: 1.0 and 0.9)."""
APART = 0.5
"""Standard deviation of the logarithm by which healthy disks differ in an interval, however many I/Os they serve."""
PROOF = 9.0
MOST_OF_AN_INTERVAL = 4.5
ANY_INTERVAL = 3.0
"""Whatever may have stalled in it."""
DOUBTED = 1.5
"""Slower than its peers, but as fast as it always was."""
NO_STALL_S = 30.0
"""No stall lasts for so long: where all I/Os of an interval together were late by more, it may be all of a proof."""
STALL_S = 0.65
"""A stall of a healthy disk that lasts for so long more is e times rarer."""
FAR = 10.0
"""Times longer than usual that an I/O takes, or is outstanding, before its seconds count for themselves."""
WELL = 3.6
MOST_WELL = 2.0
"""As `PROOF` and `MOST_OF_AN_INTERVAL`, for being well again."""
SLOW = 0.9 * SICK
"""What is called slow is no faster, until it is called well."""
KEPT = 3
"""Newest intervals that give a slow OST's speed."""


class Shown(NamedTuple):
    """What the I/Os of one interval say of an OST."""

    slowness: float
    """Logarithm of how many times slower than its peers' they were, as far as nothing explains it; 0: not slower."""
    ios: float
    peers: int
    """OSTs."""
    peers_ios: float
    excess_s: float
    """By which the mean I/O took longer than one of its peers would have, over the number in flight."""
    bytes_per_s: float
    """Of the disk while it was busy."""


def variance(ios: float, peers: int, peers_ios: float) -> float:
    """Of the logarithm of how an interval's mean time compares with the median of so many peers, for a well OST."""
    of_ios = sum(math.log1p(VARIATION**2 / max(1.0, n)) for n in (ios, peers_ios))
    return APART**2 * (1 + math.pi / 2 / max(1, peers)) + of_ios


def _likelier(shown: Shown, noise: float) -> float:
    """Logarithm of how many times likelier it is of a slow OST than of a well one, as far as one interval counts."""
    if shown.slowness < SHIFT:
        return min(MOST_OF_AN_INTERVAL, SHIFT / noise * (shown.slowness - SHIFT / 2))
    stalls = shown.excess_s / STALL_S
    whole = shown.excess_s * shown.ios > NO_STALL_S
    most = PROOF if whole else min(MOST_OF_AN_INTERVAL, ANY_INTERVAL + stalls * shown.ios)
    likelier = min(most, shown.slowness**2 / (2 * noise))
    return max(likelier, stalls) if shown.slowness > math.log(FAR) else likelier


class Slowness:
    """The sequential test of one direction (reads or writes) of one OST."""

    __slots__ = ("_kept", "_well", "score", "slow", "slowest_bytes_per_s")

    def __init__(self) -> None:
        self.score = 0.0
        """Towards `PROOF`."""
        self.slow = False
        self._well = 0.0
        self.slowest_bytes_per_s = math.inf
        """That was seen while it was called slow; infinite where nothing was."""
        self._kept: deque[tuple[float, float]] = deque(maxlen=KEPT)
        """(slowness, weight)."""

    @property
    def relative(self) -> float:
        """Speed over that of its peers; 1 for one that is not slow, below `SICK` for one that is."""
        if not self.slow:
            return 1.0
        seen = math.exp(-sum(x * w for x, w in self._kept) / sum(w for _, w in self._kept))
        return min(seen, SLOW)

    @property
    def proven(self) -> float:
        """0 for well, 1 for slow: what is seen raises and lowers it, time alone does not."""
        return 1.0 - self._well / WELL if self.slow else min(1.0, self.score / PROOF)

    @property
    def times(self) -> float:
        """How many times slower than its peers it was lately, whether that is proof or not."""
        weight = sum(w for _, w in self._kept)
        return math.exp(sum(x * w for x, w in self._kept) / weight) if weight else 1.0

    def take(self, shown: Shown, still: float, noise: float | None = None, most: float = math.inf) -> None:
        """Judge by one more interval. still: what `exp(-slowness)` of its I/Os would be at `slowest_bytes_per_s`;
        noise: variance of the slowness of a well OST, where it is no comparison with peers; most: what the interval
        may count for.
        """
        noise = variance(shown.ios, shown.peers, shown.peers_ios) if noise is None else noise
        if self.slow:
            self._judge_slow(shown, still, noise)
            return
        self._kept.append((shown.slowness, 1 / noise))
        self.score = max(0.0, self.score + min(most, _likelier(shown, noise)))
        if self.score >= PROOF:
            self._call_slow(shown.bytes_per_s)

    def wait(self, seconds: float, usual_s: float) -> None:
        """I/Os are in flight and none has ended for `seconds`, where `usual_s` would have done."""
        if self.slow or seconds < FAR * usual_s or self.score + seconds / STALL_S < PROOF:
            return
        self._kept.clear()
        self._kept.append((math.log(seconds / usual_s), 1.0))
        self._call_slow(math.inf)

    def _call_slow(self, bytes_per_s: float) -> None:
        self.slow, self.score, self._well, self.slowest_bytes_per_s = True, 0.0, 0.0, bytes_per_s
        # What it was like before it was slow is no measure of it now.
        slow = [each for each in self._kept if each[0] > SHIFT / 2]
        self._kept.clear()
        self._kept.extend(slow)

    def _judge_slow(self, shown: Shown, still: float, noise: float) -> None:
        slow = shown.slowness > SHIFT / 2
        if slow:
            self.slowest_bytes_per_s = min(self.slowest_bytes_per_s, shown.bytes_per_s)
        shift = min(SHIFT, -math.log(still)) if still > 0 else SHIFT
        if not slow and shift <= SHIFT / 2:
            return  # a disk that is held by bytes per second serves small I/Os well: these say nothing of it
        self._kept.append((shown.slowness, 1 / noise))
        likelier = shift / noise * (shift / 2 - shown.slowness)
        self._well = max(0.0, self._well + min(likelier, MOST_WELL))
        if self._well >= WELL:
            self.slow, self.score, self._well = False, 0.0, 0.0
            self._kept.clear()
