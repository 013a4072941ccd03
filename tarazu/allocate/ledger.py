"""The reservation ledger: bytes that were placed but cannot be seen in `kbytesavail` yet, per file system and
OST.

A promise shrinks by the close event's real size and ends two statistics intervals after it, or at the end of
the job step, or when its step is silent for too long, or when it expires; never by watching `kbytesavail`,
which others change too.

It holds millions of stripes: arrays instead of objects (10 bytes a stripe, 16 a file, 4 more once it is
closed), and timers instead of a look at everything.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tarazu.stripes import Stripes, pack

OPEN = math.inf
"""Release time of a file whose close was not reported."""
GONE = -math.inf
"""That of a file that promises nothing any more."""
MAX_ENDED = 10_000
"""Ids remembered after their end, so that one which is sent again late is not entered again."""
MAX_DEAD = 1_000
MAX_DEAD_STRIPES = 1_000_000
"""Kept of dead steps, in case they report again; the oldest are dropped first."""


class Dead(NamedTuple):
    """A job step that has not reported for too long."""

    id: str
    fs_name: str
    uid: int
    size_bytes: int
    """What its promise shrank by."""
    silent_s: float
    again: bool
    """It had died before, and spoken again since."""


@dataclass(slots=True)
class Promise:
    """One allocation's; to be changed by the ledger only."""

    fs_name: str
    uid: int
    expires_at_s: float
    stripes: Stripes
    release_s: array[float]
    """For each file: when its bytes are released, OPEN or GONE."""
    left: int
    """Files that are not GONE."""
    alive_s: float
    """0: silence means nothing."""
    heard_s: float
    """On the clock that stands still while its owner does."""
    closing: dict[int, array[int]] = field(default_factory=dict)
    """Second of release → files; a closed file is in one of them."""
    held_bytes: int = 0
    dead: bool = False
    """Its open files are out of the sums."""
    deaths: int = 0


class Ledger:
    """Promises by allocation id. All times are on the caller's clock, in seconds."""

    def __init__(self) -> None:
        self._promises: dict[str, Promise] = {}
        self._ended: dict[str, float] = {}
        """Ids that are over → when they may be forgotten; in the order of their ends."""
        self._dead: dict[str, None] = {}
        self._dead_stripes = 0
        self._totals: dict[str, dict[int, int]] = {}
        self._written: dict[str, dict[int, int]] = {}
        """File system → OST → bytes: of all that is promised, and of its closed files."""
        self._held: Counter[tuple[int, str]] = Counter()
        """(user, file system) → bytes."""
        self._numbers: Counter[int] = Counter()
        self._stripes: Counter[int] = Counter()
        """By user: promises and their stripes, those of dead steps apart."""
        self._expiries: list[tuple[float, str]] = []
        self._releases: list[tuple[int, str]] = []
        self._silences: list[tuple[float, str]] = []
        self._paused_s = 0.0

    def __len__(self) -> int:
        """Number of allocations with a promise left."""
        return len(self._promises) - len(self._dead)

    def __contains__(self, id: str) -> bool:
        """True from the promise to its expiry, also after its end."""
        return id in self._promises or id in self._ended

    def owner(self, id: str) -> int | None:
        """The uid that it was promised to; None where nothing is promised any more."""
        entry = self._promises.get(id)
        return entry.uid if entry else None

    def promise(
        self,
        id: str,
        fs_name: str,
        expires_at_s: float,
        files: Stripes | Iterable[Mapping[int, int]],
        *,
        uid: int = 0,
        alive_s: float = 0.0,
        now: float = 0.0,
    ) -> None:
        """Enter an allocation: bytes by OST index for each file. The same id again changes nothing.

        `alive_s` above 0: it counts as dead when it has not reported (`heard`) for so long after `now`.
        """
        if id in self:
            return
        stripes = files if isinstance(files, Stripes) else pack(files)
        count = len(stripes.starts) - 1
        release_s = array("d", (OPEN,)) * count
        entry = Promise(fs_name, uid, expires_at_s, stripes, release_s, count, alive_s, now - self._paused_s)
        self._promises[id] = entry
        self._count(entry, 1)
        self._add(entry, 0, len(stripes.osts), 1)
        heapq.heappush(self._expiries, (expires_at_s, id))
        if alive_s > 0:
            heapq.heappush(self._silences, (entry.heard_s + alive_s, id))
        if not count:
            self._end(id, entry)

    def remember(self, id: str, until_s: float) -> None:
        """This id is over."""
        if id not in self:
            self._ended[id] = until_s
            heapq.heappush(self._expiries, (until_s, id))
            self._forget_oldest()

    def stands(self, id: str) -> bool:
        """True while this allocation has a promise left and its step is alive."""
        return id in self._promises and id not in self._dead

    def standing_on(self, fs_name: str, osts: Iterable[int], id: str = "") -> list[str]:
        """Allocations of which a file that is still open, or to come, has a stripe on one of these OSTs; of one or
        of all. A million stripes take some milliseconds.
        """
        import numpy as np

        wanted = [ost for ost in osts if ost in self._totals.get(fs_name, {})]
        allocations = []
        for each in (id,) if id else tuple(self._promises) if wanted else ():
            entry = self._promises.get(each)
            if entry is None or entry.dead or entry.fs_name != fs_name:
                continue
            stripes = np.frombuffer(entry.stripes.osts, np.uint16)
            hits = np.flatnonzero(stripes == wanted[0] if len(wanted) == 1 else np.isin(stripes, wanted))
            if len(hits):
                starts = np.frombuffer(entry.stripes.starts, np.uint32)
                files = np.searchsorted(starts, hits, side="right") - 1
                if (np.frombuffer(entry.release_s)[files] == OPEN).any():
                    allocations.append(each)
        return allocations

    def closed(self, id: str, file_index: int, size_bytes: int, now: float, release_at_s: float) -> None:
        """A file was closed at `size_bytes`: its promise shrinks to that, in proportion, until the first whole
        second from `release_at_s` on.

        A file larger than promised keeps its promise: what it holds beyond is in `kbytesavail` soon. A second
        close changes the size again; the release is that of the last one. Unknown ids and files are ignored:
        the message may come after the end of the step.
        """
        entry = self._promises.get(id)
        if entry is None or not 0 <= file_index < len(entry.release_s):
            return
        if self.heard(id, now):
            self.revive(id, now)
        if entry.release_s[file_index] == GONE:
            return
        start, end = entry.stripes.starts[file_index], entry.stripes.starts[file_index + 1]
        sizes = entry.stripes.sizes
        promised = sum(sizes[start:end])
        if 0 <= size_bytes < promised:
            smaller = array("Q", [size * size_bytes // promised for size in sizes[start:end]])
            less = [before - after for before, after in zip(sizes[start:end], smaller, strict=True)]
            sizes[start:end] = smaller
            self._sum(entry, entry.stripes.osts[start:end], less, -1)
            if entry.release_s[file_index] != OPEN:
                _tally(self._written, entry.fs_name, entry.stripes.osts[start:end], less, -1)
        if release_at_s <= now:
            self._release(entry, file_index)
            self._end_if_empty(id, entry)
        else:
            before = entry.release_s[file_index]
            entry.release_s[file_index] = min(release_at_s, entry.expires_at_s)
            if before == OPEN:
                _tally(self._written, entry.fs_name, entry.stripes.osts[start:end], sizes[start:end], 1)
            if entry.release_s[file_index] < before:
                self._release_later(id, entry, file_index)

    def ended(self, id: str) -> None:
        """The job step is over: what was not closed is released now, what was at its time. Unknown ids are
        ignored.
        """
        entry = self._promises.get(id)
        if entry is None:
            return
        self._let_go(entry)
        entry.alive_s = 0.0
        if entry.dead:
            self._count_dead(id, entry, -1)
        for index, release_s in enumerate(entry.release_s):
            if release_s == OPEN:
                entry.release_s[index] = GONE
                entry.left -= 1
        self._end_if_empty(id, entry)

    def heard(self, id: str, now: float) -> bool:
        """A sign of life of this job step. True when it counts as dead: `revive` it then."""
        entry = self._promises.get(id)
        if entry is None:
            return False
        entry.heard_s = max(entry.heard_s, now - self._paused_s)
        return entry.dead

    def revive(self, id: str, now: float) -> None:
        """A job step that counted as dead reports again: its open files are promised again."""
        entry = self._promises.get(id)
        if entry is None or not entry.dead:
            return
        self._count_dead(id, entry, -1)
        for start, end in self._open(entry):
            self._add(entry, start, end, 1)
        entry.heard_s = max(entry.heard_s, now - self._paused_s)
        heapq.heappush(self._silences, (entry.heard_s + entry.alive_s, id))

    def silent(self, now: float) -> list[str]:
        """Job steps that have not reported for too long, the longest first: they are to `die`."""
        steps: dict[str, None] = {}
        clock = now - self._paused_s
        while self._silences and self._silences[0][0] <= clock:
            _, id = heapq.heappop(self._silences)
            entry = self._promises.get(id)
            if entry is None or entry.dead or not entry.alive_s:
                continue
            if entry.heard_s + entry.alive_s > clock:
                heapq.heappush(self._silences, (entry.heard_s + entry.alive_s, id))
            else:
                steps[id] = None
        return list(steps)

    def die(self, ids: Iterable[str], now: float) -> list[Dead]:
        """End the promises of these job steps, but for closed files that wait for their release; says which."""
        dead = []
        for id in ids:
            entry = self._promises.get(id)
            if entry is None or entry.dead:
                continue
            before = entry.held_bytes
            self._let_go(entry)
            self._count_dead(id, entry, 1)
            entry.deaths += 1
            released, silent_s = before - entry.held_bytes, now - self._paused_s - entry.heard_s
            dead.append(Dead(id, entry.fs_name, entry.uid, released, silent_s, entry.deaths > 1))
        while len(self._dead) > MAX_DEAD or self._dead_stripes > MAX_DEAD_STRIPES:
            self.ended(next(iter(self._dead)))
        return dead

    def excuse(self, seconds: float) -> None:
        """The caller could not listen for so long: nobody was silent meanwhile."""
        self._paused_s += seconds

    def get(self, id: str) -> Promise | None:
        """The promise of this id, if there is one left."""
        return self._promises.get(id)

    def left_of(self, id: str) -> dict[int, int]:
        """What stands of one promise: bytes by OST index; empty where nothing does."""
        entry = self._promises.get(id)
        left: dict[int, int] = {}
        if entry is None:
            return left
        stripes = entry.stripes
        for index, release_s in enumerate(entry.release_s):
            if release_s != GONE and not (entry.dead and release_s == OPEN):
                for at in range(stripes.starts[index], stripes.starts[index + 1]):
                    left[stripes.osts[at]] = left.get(stripes.osts[at], 0) + stripes.sizes[at]
        return left

    def heard_s(self, id: str) -> float:
        """When this job step reported last; minus infinity for one without a promise."""
        entry = self._promises.get(id)
        return entry.heard_s + self._paused_s if entry else -math.inf

    def expire(self, now: float) -> int:
        """Drop what expired or was due for release; returns how many allocations with promises expired."""
        left = 0
        while self._expiries and self._expiries[0][0] <= now:
            at_s, id = heapq.heappop(self._expiries)
            entry = self._promises.get(id)
            # By its own timer, not an earlier one's: a ledger that was restored from this one has no others.
            if entry is not None and entry.expires_at_s <= at_s:
                left += not entry.dead
                self._let_go(entry)
                for closed in entry.closing.values():
                    for index in closed:
                        self._release(entry, index)
                self._end(id, entry)
            if self._ended.get(id, OPEN) <= now:
                del self._ended[id]
        while self._releases and self._releases[0][0] <= now:
            second, id = heapq.heappop(self._releases)
            entry = self._promises.get(id)
            if entry is None:
                continue
            for index in entry.closing.pop(second, ()):
                if entry.release_s[index] <= second:
                    self._release(entry, index)
                else:
                    self._release_later(id, entry, index)
            self._end_if_empty(id, entry)
        return left

    def held_bytes(self, uid: int, fs_name: str) -> int:
        """Bytes that this user's allocations hold on this file system."""
        return self._held[uid, fs_name]

    def numbers(self, uid: int | None = None) -> tuple[int, int]:
        """Allocations with a promise left and the stripes entered for them; of one user or of all."""
        if uid is None:
            return len(self), self._stripes.total()
        return self._numbers[uid], self._stripes[uid]

    def promised(self, fs_name: str) -> dict[int, int]:
        """Promised bytes by OST index; OSTs without a promise are left out."""
        return dict(self._totals.get(fs_name, {}))

    def written(self, fs_name: str) -> dict[int, int]:
        """Of these the bytes of closed files: they take space, but nobody writes them any more."""
        return dict(self._written.get(fs_name, {}))

    def _open(self, entry: Promise) -> Iterator[tuple[int, int]]:
        """The stripes of files whose close was not reported: (first, end), neighbours as one."""
        starts = entry.stripes.starts
        if entry.left == len(entry.release_s) and not entry.closing:
            yield 0, starts[-1]
            return
        first = None
        for index, release_s in enumerate(entry.release_s):
            if release_s == OPEN:
                first = starts[index] if first is None else first
            elif first is not None:
                yield first, starts[index]
                first = None
        if first is not None:
            yield first, starts[-1]

    def _let_go(self, entry: Promise) -> None:
        """Take what is open out of the sums."""
        if not entry.dead:
            for start, end in self._open(entry):
                self._add(entry, start, end, -1)

    def _release(self, entry: Promise, index: int) -> None:
        if entry.release_s[index] != GONE:
            start, end = entry.stripes.starts[index], entry.stripes.starts[index + 1]
            if entry.release_s[index] != OPEN:
                of_it = entry.stripes.osts[start:end], entry.stripes.sizes[start:end]
                _tally(self._written, entry.fs_name, *of_it, -1)
            entry.release_s[index] = GONE
            entry.left -= 1
            self._add(entry, start, end, -1)

    def _release_later(self, id: str, entry: Promise, index: int) -> None:
        second = math.ceil(entry.release_s[index])
        if second not in entry.closing:
            entry.closing[second] = array("I")
            heapq.heappush(self._releases, (second, id))
        entry.closing[second].append(index)

    def _end_if_empty(self, id: str, entry: Promise) -> None:
        if not entry.left:
            self._end(id, entry)

    def _end(self, id: str, entry: Promise) -> None:
        """Nothing of it is promised any more: what stays is its id."""
        if entry.dead:
            self._count_dead(id, entry, -1)
        self._count(entry, -1)
        del self._promises[id]
        self._ended[id] = entry.expires_at_s
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self._ended) > MAX_ENDED:
            del self._ended[next(iter(self._ended))]
        self._tidy(self._expiries)
        self._tidy(self._silences)

    def _tidy(self, timers: list[tuple[float, str]]) -> None:
        """Drop the timers of what is forgotten, once most are such."""
        if len(timers) > 1024 + 2 * (len(self._promises) + len(self._ended)):
            timers[:] = [timer for timer in timers if timer[1] in self]
            heapq.heapify(timers)

    def _count(self, entry: Promise, sign: int) -> None:
        self._numbers[entry.uid] += sign
        self._stripes[entry.uid] += sign * len(entry.stripes.osts)
        if not self._numbers[entry.uid]:
            del self._numbers[entry.uid], self._stripes[entry.uid]

    def _count_dead(self, id: str, entry: Promise, sign: int) -> None:
        entry.dead = sign > 0
        self._dead_stripes += sign * len(entry.stripes.osts)
        self._count(entry, -sign)
        if entry.dead:
            self._dead[id] = None
        else:
            del self._dead[id]

    def _add(self, entry: Promise, start: int, end: int, sign: int) -> None:
        """Add the stripes from `start` to `end` to the sums, or take them away."""
        self._sum(entry, entry.stripes.osts[start:end], entry.stripes.sizes[start:end], sign)

    def _sum(self, entry: Promise, osts: Iterable[int], sizes: Iterable[int], sign: int) -> None:
        added = _tally(self._totals, entry.fs_name, osts, sizes, sign)
        entry.held_bytes += sign * added
        held = self._held[entry.uid, entry.fs_name] + sign * added
        if held:
            self._held[entry.uid, entry.fs_name] = held
        else:
            self._held.pop((entry.uid, entry.fs_name), None)


def _tally(
    sums: dict[str, dict[int, int]], fs_name: str, osts: Iterable[int], sizes: Iterable[int], sign: int
) -> int:
    """Add bytes to the sums of a file system, or take them away; how many."""
    totals = sums.setdefault(fs_name, {})
    added = 0
    for ost, size in zip(osts, sizes, strict=True):
        added += size
        left = totals.get(ost, 0) + sign * size
        if left:
            totals[ost] = left
        else:
            totals.pop(ost, None)
    if not totals:
        del sums[fs_name]
    return added
