"""The ledger's clock: seconds that survive restarts and reboots, and follow no jump of another clock.

It goes on as CLOCK_BOOTTIME does, which also counts while the node sleeps; it begins at Unix time. Through a restart it
counts mdsd's absence: by CLOCK_BOOTTIME in the same boot, else by Unix time. Time that nothing vouches for (a jump, a
sleep, a reboot) counts at most `UNSEEN_S`: a promise that lives too long only makes a target look fuller for a while,
one that ends too early gives its space away twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tarazu.allocate.records import Marked
from tarazu.durable import boot_id

UNSEEN_S = 600.0


@dataclass(frozen=True)
class Sources:
    """The node's clocks, in seconds."""

    boottime_s: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    unix_s: Callable[[], float] = time.time
    boot_id: Callable[[], str] = boot_id


class LedgerClock:
    def __init__(self, sources: Sources | None = None) -> None:
        self.sources = sources or Sources()
        self._boot_id = self.sources.boot_id()
        self._seen_s = self.sources.boottime_s()
        self._now = self.sources.unix_s()

    def now(self) -> float:
        """Never less than before. To be asked every few seconds: more than `UNSEEN_S` between two looks is a jump."""
        at = self.sources.boottime_s()
        self._now += min(max(at - self._seen_s, 0.0), UNSEEN_S)
        self._seen_s = at
        return self._now

    def follow(self, now_s: float) -> None:
        """Go on from this time of the clock whose records are followed."""
        self.now()
        self._now = now_s

    def mark(self) -> Marked:
        now = self.now()
        return Marked(now, self._boot_id, self._seen_s, self.sources.unix_s())

    def not_before(self, at_s: float) -> None:
        """So late it is at least."""
        self._now = max(self._now, at_s)

    def resume(self, mark: Marked, latest_s: float) -> None:
        """Go on where another process's clock was at `mark`, and not before its latest record."""
        at = self.sources.boottime_s()
        if mark.boot_id and mark.boot_id == self._boot_id:
            away_s = max(at - mark.boottime_s, 0.0)
        else:
            away_s = min(max(self.sources.unix_s() - mark.unix_s, 0.0), UNSEEN_S)
        self._seen_s = at
        self._now = max(mark.at_s + away_s, latest_s)
