"""How clientd divides what it has among users: conversations, memory and descriptors, turns to plan.

A user may hold as much of a thing as he leaves free: one alone up to half, and there is always a part for the
next. Turns go to the user with the fewest, then to who came first.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tarazu.errors import Busy

ROOT = 0


class Share:
    """So much of one thing for all users together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used: Counter[int] = Counter()
        self._lock = threading.Lock()

    def take(self, uid: int, amount: int = 1) -> bool:
        """False when it is more than is left for this user; root may have all that is left."""
        with self._lock:
            left = self.limit - self.used.total() - amount
            if left < 0 or (uid != ROOT and self.used[uid] + amount > left):
                return False
            self.used[uid] += amount
            return True

    def give(self, uid: int, amount: int = 1) -> None:
        with self._lock:
            self.used[uid] -= amount
            if not self.used[uid]:
                del self.used[uid]

    def of(self, uid: int) -> UserShare:
        return UserShare(self, uid)


@dataclass(frozen=True)
class UserShare:
    """A Share as one user sees it (`wire.channel.Allowance`)."""

    share: Share
    uid: int

    def take(self, amount: int) -> bool:
        return self.share.take(self.uid, amount)

    def give(self, amount: int) -> None:
        self.share.give(self.uid, amount)


class Turns:
    """So many units of work at once. A large piece of work takes several units, and waits until they are free."""

    def __init__(self, units: int) -> None:
        """One user has at most three quarters of them, so that another one's small work starts at once."""
        self.units = units
        self.most = max(1, units * 3 // 4)
        self._running: Counter[int] = Counter()
        self._waiting: dict[int, tuple[int, int]] = {}
        """Number of arrival → (uid, units)."""
        self._numbers = itertools.count()
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @contextmanager
    def turn(self, uid: int, units: int, timeout_s: float) -> Iterator[None]:
        """Wait for one's turn. Raises Busy when it has not come within `timeout_s`."""
        units = min(max(units, 1), self.most)
        deadline = time.monotonic() + timeout_s
        with self._changed:
            number = next(self._numbers)
            self._waiting[number] = (uid, units)
            try:
                while self._next() != number:
                    left_s = deadline - time.monotonic()
                    if left_s <= 0:
                        raise Busy(
                            f"expected a turn within {timeout_s:g} s, found {self.waiting - 1} others waiting"
                        )
                    self._changed.wait(left_s)
                self._running[uid] += units
            finally:
                del self._waiting[number]
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._running[uid] -= units
                if not self._running[uid]:
                    del self._running[uid]
                self._changed.notify_all()

    def _next(self) -> int | None:
        """Who may start now. Nobody overtakes the one whose turn it is, however large his work is."""
        able = [n for n, (uid, units) in self._waiting.items() if self._running[uid] + units <= self.most]
        first = min(able, key=lambda n: (self._running[self._waiting[n][0]], n), default=None)
        if first is None or self._running.total() + self._waiting[first][1] > self.units:
            return None
        return first
