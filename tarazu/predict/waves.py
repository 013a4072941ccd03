"""Which files are written at about the same time: a number for each, the same for those of one wave.

By when each was open in the run that was recorded, whatever process wrote it: ranks, forked processes, threads and a
shell's background jobs look alike. Files whose times overlap are written side by side. A file that nobody saw closed
counts as open to the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

MATTERS = 0.5
"""Share of a file: a lane that has written so much in a wave writes the file in a later one. Less does not count, as of
a small header before the data.
"""


class Opened(Protocol):
    """A file as it was recorded, or is expected."""

    @property
    def at_s(self) -> float: ...
    @property
    def until_s(self) -> float: ...
    @property
    def size_bytes(self) -> int: ...


class _Lane(NamedTuple):
    """Files one after another: there are as many lanes as files were ever open at a time."""

    wave: int
    """Of its last file."""
    wrote_bytes: float
    """In that wave."""


_NEW_LANE = _Lane(0, -math.inf)


def waves(files: Sequence[Opened]) -> list[int]:
    """Waves of these files, numbered by time from 0."""
    return waves_of([f.at_s for f in files], [f.until_s for f in files], [f.size_bytes for f in files])


def waves_of(at_s: Sequence[float], until_s: Sequence[float], sizes: Sequence[float]) -> list[int]:
    """The same by when they are first opened and last closed (earlier: not known) and by their bytes.

    A file belongs to the wave of most bytes beside which it is opened. Who has written his part of a wave begins the
    next one, or joins who has begun it before: so a pool of six processes with many files writes six at a time,
    though each of its files overlaps the next.
    """
    of_file, count, now_s = [0] * len(at_s), 0, -math.inf
    free: list[_Lane] = []
    writing: list[tuple[float, int, float, _Lane]] = []
    """(until, number of the file, its bytes, its lane with them), the next to be closed first."""
    beside: dict[int, list[float]] = {}
    """Wave → files that are open now, their bytes."""
    for i in sorted(range(len(at_s)), key=at_s.__getitem__):
        # Those that are opened at one moment are open together, however short.
        while at_s[i] > now_s and writing and writing[0][0] <= at_s[i]:
            _, _, size, lane = heappop(writing)
            free.append(lane)
            beside[lane.wave][0] -= 1
            beside[lane.wave][1] -= size
            if not beside[lane.wave][0]:
                del beside[lane.wave]
        now_s, size = at_s[i], sizes[i]
        lane = free.pop() if free else _NEW_LANE
        least = lane.wave + (lane.wrote_bytes >= MATTERS * size)
        wave = max((w for w in beside if w >= least), key=lambda w: beside[w][1], default=count)
        count = max(count, wave + 1)
        of_file[i] = wave
        lane = _Lane(wave, size + (lane.wrote_bytes if lane.wave == wave and lane is not _NEW_LANE else 0))
        now = beside.setdefault(wave, [0, 0.0])
        now[0] += 1
        now[1] += size
        heappush(writing, (until_s[i] if until_s[i] >= now_s else math.inf, i, size, lane))
    return of_file
