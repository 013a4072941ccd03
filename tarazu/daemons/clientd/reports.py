"""Reports of ended job steps: acknowledged when they come, worked on when there is time, users in turns.

A report that finds the database locked is put back and tried again, within bounds. mdsd hears that a step has
ended at the latest `ENDED_S` after its report, whatever holds that up. A report that is lost with clientd loses
nothing but its rows' outcomes: the run is in the user's history, and the promises of its step end when its
signs of life have stopped.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tarazu.daemons.clientd.notices import Notices
from tarazu.daemons.clientd.stored_plans import StoredPlans
from tarazu.daemons.shares import Share
from tarazu.errors import Busy, StoreError
from tarazu.left import REASONS
from tarazu.trace.records import LARGEST_BYTES, OUTCOMES, RunRecord, summed
from tarazu.trace.runfile import read_run
from tarazu.wire import local
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.clientd")

MAX_REPORTS = 256
"""Each holds one descriptor."""
WORKERS = 3
"""A user has one at most: a descriptor that never gives what it promises holds up nobody else."""
ENDED_S = 5.0
"""mdsd first gets what was closed; the report that the step has ended comes no later than this."""
MAX_ATTEMPTS = 10
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
GIVE_UP_S = 600.0


@dataclass(eq=False)
class _WaitingReport:
    """A report that is not done with."""

    uid: int
    report: local.StepReport
    descriptor: int
    since: float = field(default_factory=time.monotonic)
    due: float = 0.0
    attempts: int = 0
    told: bool = False
    """mdsd knows that the step has ended."""


class ReportWorkers:
    """What waits for its turn, the threads that work on it, and the one that does not wait for them."""

    def __init__(self, plans: StoredPlans, notices: Notices) -> None:
        self.plans = plans
        self.notices = notices
        self.share = Share(MAX_REPORTS)
        self.files = dict.fromkeys(OUTCOMES, 0)
        """Of ended steps, by what became of them; as their users' histories say."""
        self.bytes = dict.fromkeys(OUTCOMES, 0)
        self.not_placed = dict.fromkeys(REASONS, 0)
        """The same that were not placed, by the word of the reason."""
        self.runs_not_placed = dict.fromkeys(REASONS, 0)
        """Their runs; and those of which nobody knows the files."""
        self._said = SaidOnce(log)
        self._changed = threading.Condition()
        self._queues: dict[int, deque[_WaitingReport]] = {}
        """Of each user, users in the order of their turns."""
        self._busy: set[int] = set()
        self._untold: deque[_WaitingReport] = deque()
        """In the order in which they came."""

    def start(self) -> None:
        for number in range(WORKERS):
            threading.Thread(target=self._run, name=f"tarazu-reports-{number}", daemon=True).start()
        threading.Thread(target=self._tell, name="tarazu-reports-ends", daemon=True).start()

    @property
    def waiting(self) -> int:
        return self.share.used.total()

    def put(self, uid: int, report: local.StepReport, descriptor: int) -> None:
        """Take a report over, and the descriptor of its run. Raises Busy (and takes nothing) when too many wait."""
        if not self.share.take(uid):
            raise Busy(f"expected fewer reports than {MAX_REPORTS}, found {self.waiting} waiting")
        waiting = _WaitingReport(uid, report, descriptor)
        with self._changed:
            self._queues.setdefault(uid, deque()).append(waiting)
            self._untold.append(waiting)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            waiting = self._take()
            try:
                again_s = self._work(waiting)
            except Exception as error:
                what = str(error)
                # A user who sends nonsense must not fill the log; the descriptor's number says nothing.
                self._said.warning(
                    f"a step report of uid {waiting.uid}: {what}", f"{waiting.uid} {what.partition(': ')[2]}"
                )
                again_s = None
            self._done(waiting, again_s)

    def _take(self) -> _WaitingReport:
        """The first due report of the next user of whom no other one is worked on."""
        with self._changed:
            while True:
                now, soonest = time.monotonic(), float("inf")
                for uid in [uid for uid in self._queues if uid not in self._busy]:
                    queue = self._queues[uid]
                    first = min(queue, key=lambda w: (max(w.due, now), w.since))
                    if first.due <= now:
                        queue.remove(first)
                        del self._queues[uid]
                        if queue:
                            self._queues[uid] = queue  # behind all others
                        self._busy.add(uid)
                        return first
                    soonest = min(soonest, first.due)
                self._changed.wait(min(soonest - now, threading.TIMEOUT_MAX))

    def _done(self, waiting: _WaitingReport, again_s: float | None) -> None:
        if again_s is None:
            if not waiting.told:  # what is no run closes nothing
                self._tell_ended(waiting, waiting.report.request_ids)
            os.close(waiting.descriptor)
            self.share.give(waiting.uid)
        with self._changed:
            self._busy.discard(waiting.uid)
            if again_s is not None:
                waiting.due = time.monotonic() + again_s
                self._queues.setdefault(waiting.uid, deque()).append(waiting)
            self._changed.notify_all()

    def _work(self, waiting: _WaitingReport) -> float | None:
        """Seconds until it is to be tried again; None: it is done with."""
        waiting.attempts += 1
        try:
            run = read_history(waiting.descriptor)
            self._tell_closed(waiting, run)
            self.plans.ended(waiting.report, run, waiting.uid)
            self._count(run)
        except StoreError as error:
            if waiting.attempts >= MAX_ATTEMPTS or time.monotonic() - waiting.since > GIVE_UP_S:
                raise
            again_s = min(FIRST_RETRY_S * 2.0 ** (waiting.attempts - 1), LONGEST_RETRY_S)
            log.info("a step report waits %g s: %s", again_s, error)
            return again_s
        return None

    def _count(self, run: RunRecord) -> None:
        with self._changed:
            for file in run.files:
                if file.outcome in self.files:  # a user's own word
                    self.files[file.outcome] += 1
                    self.bytes[file.outcome] += min(max(0, file.size_bytes), 1 << 62)

        self.count_not_placed({of.why.word: of.files for of in summed(run.not_placed, by_word=True)})

    def count_not_placed(self, files: Mapping[str, int]) -> None:
        """Word of a reason → files; a user's own words too."""
        with self._changed:
            for word, count in files.items():
                if word in self.not_placed:
                    self.not_placed[word] += min(max(0, count), LARGEST_BYTES)
                    self.runs_not_placed[word] += 1

    def _tell_closed(self, waiting: _WaitingReport, run: RunRecord) -> None:
        """Tell mdsd what was closed, and that the step has ended; nobody's writing is waited for."""
        if waiting.told:
            return
        ids = dict.fromkeys(waiting.report.request_ids)
        try:
            for closed in self.plans.closed(waiting.report, run, waiting.uid):
                for id, files in closed.items():
                    self.notices.closed(waiting.uid, id, files)
                    ids[id] = None
        finally:
            self._tell_ended(waiting, ids)

    def _tell_ended(self, waiting: _WaitingReport, ids: Iterable[str]) -> None:
        waiting.told = True
        for id in ids:
            self.notices.ended(waiting.uid, id)

    def _tell(self) -> None:
        """Tell mdsd of steps whose reports are not worked on in time."""
        while True:
            with self._changed:
                while not self._untold:
                    self._changed.wait()
                waiting = self._untold.popleft()
            while not waiting.told and (left_s := waiting.since + ENDED_S - time.monotonic()) > 0:
                time.sleep(min(left_s, 0.5))
            if not waiting.told:
                self._tell_ended(waiting, waiting.report.request_ids)


def read_history(descriptor: int) -> RunRecord:
    """A whole run from a descriptor that a user passed. Raises TraceError for one that is no run, or too large."""
    return read_run(os.dup(descriptor))
