"""Looks at the load of the node that mdsd is on, in a thread: with 10,000 jobs, that takes a tenth of a second."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from tarazu.stats.mds_load import MdsCollector, MdsLoad

INTERVAL_S = 30.0


class MdsWatch:
    """`load` is the newest; `start` begins to look, every `INTERVAL_S`."""

    def __init__(self, root: str | Path) -> None:
        self.load = MdsLoad()
        self._collector = MdsCollector(root)
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._look, name="tarazu-mds-load", daemon=True).start()

    def _look(self) -> None:
        wait_s = 1.0  # a first rate soon
        while True:
            self.load = self._collector.collect(time.monotonic())
            if self._ended.wait(wait_s):
                return
            wait_s = INTERVAL_S

    def close(self) -> None:
        self._ended.set()
