"""A thread that works until it is told to rest or to end."""

from __future__ import annotations

import threading
from collections import Counter


class Worker(threading.Thread):
    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.resting = threading.Event()
        self._rest = threading.Event()
        self._end = threading.Event()

    def rest(self) -> None:
        """Begin nothing new; `resting` is set once nothing is open."""
        self.resting.clear()
        self._rest.set()

    def work(self) -> None:
        self.resting.clear()
        self._rest.clear()

    def end(self) -> None:
        self._end.set()
