"""Traffic and jobs on disk, and what applications' last jobs were like; kept by a thread beside the loop.

Traffic is put on disk each `SAVE_S`. What jobs moved is then added up from the files, `LAG_S` behind: by then Slurm has
said which jobs ran. It stops while Slurm is silent, so that a node's bytes are not taken for those of a job that has
ended. After a crash it goes on where it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tarazu.batch.jobs import ApplicationKey, Job
from tarazu.errors import BadInput, StoreError
from tarazu.parts.bursts.burstd.batch import SlurmAnswer
from tarazu.parts.bursts.burstd.jobs import ALIVE, Jobs
from tarazu.parts.bursts.measures import applications, intervals
from tarazu.parts.bursts.measures.applications import ApplicationCharacter
from tarazu.parts.bursts.measures.characteristics import JobBytes, Places, Thresholds, character
from tarazu.parts.bursts.measures.day import with_nodes
from tarazu.parts.bursts.measures.job_bytes import Attribution
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.machine import Machine, regular
from tarazu.parts.bursts.traffic.traffic import Traffic
from tarazu.past import no_later
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.bursts")

SAVE_S = 60.0
LAG_S = 300.0
AGREED_S = 60.0
"""An answer of Slurm's is about what was so long before: ends are told a moment late."""
TIDY_S = 600.0
GAP_S = 180.0
"""A pause of this length is noted: jobs that ran in it are not known whole."""
LAST_JOBS = 50
"""Of an application, by which it is known."""
MAX_ANSWERS = 64
MAX_WAITING = 100
"""Saves that wait for a disk; then the oldest goes."""


class Saved(NamedTuple):
    """What the loop hands over."""

    traffic: Traffic | None
    complete_s: float
    """No more is to come of what was before."""
    heard_s: float | None
    """Now, where OSSs report; None: nobody does."""


class BurstHistory:
    """`save`, `answer` and what is public are for other threads; `step` is the thread's own."""

    def __init__(
        self,
        traffic: Path,
        jobs: Path,
        *,
        interval_s: float,
        limits: Thresholds,
        limit_bytes: int,
        machine: Machine | None = None,
    ) -> None:
        """Raises StoreError."""
        self.directory = traffic
        self.interval_s = max(1, round(interval_s))
        self.machine = machine or regular(0, 1)
        self.limits, self.limit_bytes = limits, limit_bytes
        self.applications: Mapping[ApplicationKey, ApplicationCharacter] = {}
        """Those with more than five jobs that are known whole; replaced as a whole when there is news."""
        self.running: tuple[Job, ...] = ()
        self.jobs = 0
        self.size = 0
        """Bytes that traffic takes."""
        self.trouble = ""
        self.lost_rows = 0
        """Of traffic that could not be written for too long."""
        self.until_s = 0.0
        """Up to then what jobs moved is added up."""
        self._jobs = Jobs(jobs)
        self._waiting: deque[Saved] = deque()
        self._written_s = 0.0
        self._answers: deque[SlurmAnswer] = deque(maxlen=MAX_ANSWERS)
        self._answered_s = 0.0
        self._tidy_at = 0.0
        self._known_s = 0.0
        """Applications are those of jobs that ended by then."""
        self._over = threading.Event()
        self._news = threading.Event()
        self._said = SaidOnce(log)
        self._begin(time.time())
        self._thread = threading.Thread(target=self._keep, name="tarazu-history", daemon=True)

    def _begin(self, now_s: float) -> None:
        # Also where the clock was set back: what is added up is not added up again.
        self._jobs.no_later(now_s)
        self.until_s = self._jobs.begin(self._aligned(now_s), now_s)
        self._alive_s = self._jobs.known(ALIVE) or 0.0
        self.running = tuple(self._jobs.running())
        self.jobs = len(self._jobs)

    def _aligned(self, at_s: float) -> float:
        return at_s // self.interval_s * self.interval_s

    def start(self) -> None:
        self._thread.start()

    def save(self, saved: Saved) -> None:
        """Soon it is on disk."""
        if len(self._waiting) >= MAX_WAITING:
            oldest = self._waiting.popleft()
            self.lost_rows += len(oldest.traffic) if oldest.traffic else 0
        self._waiting.append(saved)
        self._news.set()

    def answer(self, answer: SlurmAnswer) -> None:
        """Slurm has said this."""
        self._answers.append(answer)
        self._news.set()

    def _keep(self) -> None:
        while not self._over.is_set():
            self._news.wait(SAVE_S)
            self._news.clear()
            self.step(time.time())
        self.step(time.time())

    def step(self, now_s: float) -> None:
        """All that there is to do. What one part of it cannot do holds up no other."""
        troubles = []
        for part in (self._no_later, self._save, self._hear, self._tidy, self._add_up):
            try:
                part(now_s)
            except (StoreError, BadInput) as error:
                troubles.append(str(error))
                self._said.warning(f"not kept: {error}")
            except Exception as error:  # whatever it is, what comes next is kept
                troubles.append(f"{type(error).__name__}: {error}")
                log.exception("what is kept")
        self.trouble = "; ".join(dict.fromkeys(troubles))

    def _no_later(self, now_s: float) -> None:
        ahead = max(self.until_s, self._alive_s) > now_s
        self.until_s = no_later(self.until_s, self._aligned(now_s))
        self._alive_s, self._known_s = no_later(self._alive_s, now_s), no_later(self._known_s, self.until_s)
        self._answered_s = no_later(self._answered_s, now_s)
        self._written_s = no_later(self._written_s, now_s)
        self._tidy_at = no_later(self._tidy_at, now_s + TIDY_S)
        if ahead:
            self._jobs.no_later(now_s)

    def _save(self, _now_s: float) -> None:
        while self._waiting:
            self._write(self._waiting[0])
            self._waiting.popleft()

    def _hear(self, _now_s: float) -> None:
        while self._answers:
            self._take(self._answers[0])
            self._answers.popleft()
        self.jobs = len(self._jobs)

    def _tidy(self, now_s: float) -> None:
        if now_s >= self._tidy_at:
            self._tidy_at = now_s + TIDY_S
            self._jobs.forget()
            days.tidy(self.directory, now_s, self.limit_bytes)
            self.size = days.size(self.directory)

    def _add_up(self, now_s: float) -> None:
        self.attribute(self._aligned(min(now_s - LAG_S, self._answered_s - AGREED_S, self._written_s)))
        self._learn()

    def _write(self, saved: Saved) -> None:
        if saved.traffic is not None:
            days.append(self.directory, saved.traffic)
        self._written_s = max(self._written_s, saved.complete_s)
        if saved.heard_s is not None:
            if saved.heard_s - self._alive_s > GAP_S:
                self._jobs.gap(self._alive_s, saved.heard_s)
            self._alive_s = max(self._alive_s, saved.heard_s)
            self._jobs.note(ALIVE, self._alive_s)

    def _take(self, answer: SlurmAnswer) -> None:
        self._jobs.put(answer.listed.jobs)
        self._answered_s = max(self._answered_s, answer.at_s)
        running = self._jobs.running()
        if answer.everything:
            there = {(job.id, job.start_s) for job in answer.listed.jobs}
            gone = [key for job in running if (key := (job.id, job.start_s)) not in there]
            if gone:
                # Seen by an earlier answer and by none since: it ended about now.
                self._jobs.ended(gone, answer.at_s)
                running = self._jobs.running()
        self.running = tuple(running)

    def attribute(self, until_s: float) -> None:
        """Add up what jobs moved up to then."""
        if until_s <= self.until_s:
            return
        late = self._jobs.without_moved(self.until_s)
        if late:
            begin_s = min(job.start_s for job in late)
            moved = self._moved(begin_s, self.until_s, {(job.id, job.start_s) for job in late})
            self._jobs.add_moved(moved)
            self._known_s = 0.0
        self._jobs.add_moved(self._moved(self.until_s, until_s), until_s)
        self.until_s = until_s

    def _moved(
        self, start_s: float, end_s: float, of: set[tuple[str, float]] | None = None
    ) -> list[JobBytes]:
        """In [start, end); `of`: only of these (id, start). Intervals belong to where they begin."""
        jobs = self._jobs.overlapping(start_s, end_s)
        if not jobs:
            return []
        places = Places(with_nodes(self.machine, jobs))
        attribution = Attribution(jobs, places)
        for interval in intervals.intervals(days.read(self.directory, start_s, end_s), places):
            attribution.add(interval)
        moved = attribution.result()
        return moved if of is None else [one for one in moved if (one.job.id, one.job.start_s) in of]

    def _learn(self) -> None:
        """Applications of which jobs ended lately."""
        until_s = self.until_s
        if until_s <= self._known_s:
            return
        places = Places(self.machine)
        by_application = dict(self.applications)
        for application in self._jobs.applications(self.limits.jobs, self._known_s, until_s):
            moved = self._jobs.moved(application, until_s, LAST_JOBS)
            characters = [character(one, places, self.limits) for one in moved]
            known = applications.of_jobs(characters, [one.bytes for one in moved], self.limits)
            if known is not None:
                by_application[application] = known
        self.applications, self._known_s = by_application, until_s

    def status(self) -> dict[str, Any]:
        return {
            "bytes": self.size,
            "jobs": self.jobs,
            "running": len(self.running),
            "applications": len(self.applications),
            "attributed_s": self.until_s,
            "lost_rows": self.lost_rows,
            "trouble": self.trouble,
        }

    def close(self) -> None:
        """What waits is written first."""
        self._over.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(30.0)
        self._jobs.close()
