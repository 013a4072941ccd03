"""Reports of ended job steps: acknowledged when they come, worked on one after another when there is time.

A report that is lost with clientd loses nothing but its rows' outcomes: the run is in the user's history, and
the promises of its step end when its signs of life have stopped.
"""

from __future__ import annotations

import logging
import os
import queue
import threading

from tarazu.daemons.notices import Notices
from tarazu.daemons.planner import Planner, read_history
from tarazu.daemons.shares import Share
from tarazu.errors import Busy
from tarazu.wire import local

log = logging.getLogger("tarazu.clientd")

MAX_REPORTS = 256
"""Each holds one descriptor."""


class Reports:
    """What waits for its turn, and the thread that works on it."""

    def __init__(self, planner: Planner, notices: Notices) -> None:
        self.planner = planner
        self.notices = notices
        self.share = Share(MAX_REPORTS)
        self._queue: queue.SimpleQueue[tuple[int, local.StepReport, int]] = queue.SimpleQueue()

    def start(self) -> None:
        threading.Thread(target=self._run, name="tarazu-reports", daemon=True).start()

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def put(self, uid: int, report: local.StepReport, descriptor: int) -> None:
        """Take a report over, and the descriptor of its run. Raises Busy (and takes nothing) when too many wait."""
        if not self.share.take(uid):
            raise Busy(f"expected fewer reports than {MAX_REPORTS}, found {self.waiting} waiting")
        self._queue.put((uid, report, descriptor))

    def _run(self) -> None:
        while True:
            uid, report, descriptor = self._queue.get()
            try:
                self._work(uid, report, descriptor)
            except Exception as error:
                log.warning("a step report: %s", error)
            finally:
                os.close(descriptor)
                self.share.give(uid)

    def _work(self, uid: int, report: local.StepReport, descriptor: int) -> None:
        ids = dict.fromkeys(report.request_ids)
        try:
            for closed in self.planner.ended(report, read_history(descriptor), uid):
                for id, files in closed.items():
                    self.notices.closed(uid, id, files)
                    ids[id] = None
        finally:
            for id in ids:
                self.notices.ended(uid, id)
