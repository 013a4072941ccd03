"""Emulated OSTs whose counters are reported to a finder at every tick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from tarazu.stats.slow_osts import SlowOstFinder
from tarazu.wire.reports import OstReport


class Reporting(Protocol):
    def report(self) -> OstReport: ...


AnOst = TypeVar("AnOst", bound=Reporting)


class Watched(Generic[AnOst]):
    """Several OSTs and the finder that watches them."""

    def __init__(self, osts: Sequence[AnOst], interval_s: float) -> None:
        self.osts = list(osts)
        self.interval_s = interval_s
        self.finder = SlowOstFinder("lustre")
        self.now = 1e9
        self.tick()

    def tick(self) -> None:
        for ost in self.osts:
            self.finder.update_server([ost.report()], self.now)
        self.now += self.interval_s
