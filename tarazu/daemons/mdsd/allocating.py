"""Requests for allocations in mdsd: from the queue to a process, from there to an answer that is kept.

What waits is allocated together (`batch.py`), one batch at a time in a process of its own (`placing.py`), so that all
else is answered meanwhile; users take turns. While the gate is closed requests wait; one whose deadline comes is
`declined`, and the job runs unplaced.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from tarazu.config import RunSettings, Settings
from tarazu.config.users import uid_of
from tarazu.daemons.mdsd.allocation_requests import (
    MAX_DEADLINE_S,
    MAX_EXPIRES_S,
    alive_s,
    clamped_alive_s,
    memory_bytes,
    why_malformed,
)
from tarazu.daemons.mdsd.audit import Audit
from tarazu.daemons.mdsd.batch import MOST_FILES, MOST_REQUESTS, BatchPart, Outcome, Placed, Refused
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.corrections import Corrections
from tarazu.daemons.mdsd.limits import PromiseLimits
from tarazu.daemons.mdsd.per_user import QUEUE_LIMITS, PerUser
from tarazu.daemons.mdsd.placing import Placing
from tarazu.daemons.mdsd.request_rate import RequestRate
from tarazu.daemons.mdsd.system import System
from tarazu.figures import NUMBERS, Histogram
from tarazu.left import GAINS_NOTHING, LEFT_TO_LUSTRE
from tarazu.stats.gate import Gate
from tarazu.stripes import from_bytes
from tarazu.wire import messages
from tarazu.wire.messages import AllocationReply, AllocationRequest, PromiseTold
from tarazu.wire.transport import Peer

log = logging.getLogger("tarazu.mdsd")

KEEP_REPLY_S = 600.0
"""A reply is kept at least this long for a request that is resent."""
KEEP_REPLY_MOST_S = 86_400.0
BEGIN_AGAIN_S = 5.0
"""A process that computes and ends at once is not begun more often."""
STARTING = "loads what computes allocations"
BUSY_S = 1.0
"""mdsd's status shows computing for longer: a job need not wait for its turn."""

LOOK_UP_S = 5.0
"""For all names of a list: mdsd answers nobody meanwhile."""


class UserLists:
    """mdsd's own look at the site's lists of users: a client's word is not needed for whom they name.

    Names are looked up once, when the settings are read: nothing that is asked for waits for a directory of users. A
    name that this node does not know, or not within seconds, is a line in the log, and clientd's alone to obey.
    """

    def __init__(self, run: RunSettings) -> None:
        self._excluded, unknown = uids(run.exclude_users)
        self._only: frozenset[int] | None = None
        if run.only_users and not (run.only_projects or run.only_partitions):
            only, others = uids(run.only_users)
            # Of whom we know no number, we cannot say that he is not the one who asks.
            self._only = None if others else only
            unknown += others
        if unknown:
            log.warning(
                "run.exclude_users, run.only_users: users that this node does not know: %s",
                ", ".join(unknown),
            )

    def why_not(self, uid: int) -> str:
        """Why this user's jobs are left alone; empty: they are not."""
        if uid in self._excluded:
            return f"run.exclude_users names uid {uid}"
        if self._only is not None and uid not in self._only:
            return f"run.only_users does not name uid {uid}"
        return ""


def uids(names: Sequence[str]) -> tuple[frozenset[int], list[str]]:
    """(uids of users given by name or number, names without one). All of them together are not waited for long."""
    known, unknown = set(), []
    until_s = time.monotonic() + LOOK_UP_S
    for name in names:
        number = int(name) if name.isdecimal() else uid_of(name, max(0.0, until_s - time.monotonic()))
        if number is None:
            unknown.append(name)
        else:
            known.add(number)
    return frozenset(known), unknown


@dataclass
class Pending:
    """A request without an answer yet."""

    request: AllocationRequest
    peer: Peer
    """Who asked last: a resent request may come over another connection."""
    arrived: float
    due: float
    """When it is declined, on the monotonic clock."""
    ended: bool = False
    """Its job step ended before the answer: nothing is to be promised."""


@dataclass
class Running:
    parts: dict[str, Pending]
    """By request id, in their order."""
    future: Future[list[Outcome]]
    since: float


class Allocating:
    """Times without other notice are on the monotonic clock."""

    def __init__(
        self,
        settings: Settings,
        book: Book,
        system: System,
        gate: Gate,
        reply: Callable[[Peer, bytes], None],
        audit: Audit,
        wake: Callable[[], None],
    ) -> None:
        self.settings = settings.allocate
        self.waiting: PerUser[Pending] = PerUser(QUEUE_LIMITS)
        self.running: Running | None = None
        self.answers: Counter[str] = Counter()
        self.told = 0
        """Promises that were taken over from leaders."""
        self.promised: list[tuple[str, str]] = []
        """(id, file system) of what was promised since somebody looked."""
        self._book, self._system, self._gate, self._reply, self.audit, self._wake = (
            book,
            system,
            gate,
            reply,
            audit,
            wake,
        )
        self._rate = RequestRate()
        self._limits = PromiseLimits(settings.mdsd.user_share, book.ledger)
        self._corrections = Corrections()
        self.users = UserLists(settings.run)
        self.seconds = Histogram()
        """Of the policy, for each batch."""
        self.batches = Histogram(NUMBERS)
        """Requests in each."""
        self._placing = Placing()
        self._worker = ThreadPoolExecutor(1, "tarazu-allocate")
        """Waits for the process."""
        self._beginning = self._begin()
        self._begin_again_at = time.monotonic() + BEGIN_AGAIN_S

    def _begin(self) -> Future[None]:
        """Have the process loaded, before a job waits for it."""
        beginning = self._worker.submit(self._placing.keep, self.settings)
        beginning.add_done_callback(lambda _future: self._wake())
        return beginning

    @property
    def ready(self) -> bool:
        """The process that computes has loaded all that a request needs: while it has not, requests wait."""
        return self._placing.runs()

    def look_at_process(self, now: float) -> None:
        """One that has ended is begun again."""
        idle = self.running is None and self._beginning.done()
        if idle and now >= self._begin_again_at and not self.ready:
            self._beginning, self._begin_again_at = self._begin(), now + BEGIN_AGAIN_S

    def close(self) -> None:
        self._placing.close()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def take_over(self, settings: Settings) -> None:
        """Settings that were read again; raises ConfigError, and changes nothing, for an audit log that cannot be
        written. Running allocations keep the former ones."""
        self.audit = Audit(settings.mdsd.audit_log)
        self._limits.share = settings.mdsd.user_share
        self.users = UserLists(settings.run)
        self.settings = settings.allocate
        self._begin()

    def owner(self, id: str) -> int | None:
        """The user whose allocation this is, asked for or answered; None for an id that nobody has."""
        if running := self._running(id):
            return running.request.uid
        for known in (self.waiting.owner(id), self._book.answered.owner(id), self._book.ledger.owner(id)):
            if known is not None:
                return known
        return None

    def turn_down(self, peer: Peer, request: AllocationRequest, reason: str) -> AllocationReply:
        """Of a request that this peer may not make: nothing is kept of it but a line."""
        reply = AllocationReply(request.id, "declined", reason)
        self.answers[reply.status] += 1
        self.audit.write(request, reply, 0.0, peer.key)
        return reply

    def ask(self, peer: Peer, request: AllocationRequest, now: float) -> None:
        """Answer a request that was answered before or cannot be; put any other in the queue."""
        if kept := self._book.answered.get(request.id):
            self._reply(peer, kept.data)
        elif waiting := self.waiting.get(request.id):
            waiting.peer = peer
        elif running := self._running(request.id):
            running.peer = peer
        elif too_often := self._rate.refusal(request.uid, now):
            log_it = self._rate.to_be_logged(request.uid, now)
            self._refuse(Pending(request, peer, now, now), "declined", too_often, keep=False, audited=log_it)
        elif wrong := why_malformed(request):
            # Nothing to keep: sent again it is as wrong as before.
            self._refuse(Pending(request, peer, now, now), "never", wrong, keep=False)
        elif unwanted := self.users.why_not(request.uid):
            self._refuse(Pending(request, peer, now, now), "never", unwanted, keep=False)
        elif request.id in self._book.ledger:
            why = "its job step ended, or it was answered so long ago that the answer is forgotten"
            self._refuse(Pending(request, peer, now, now), "declined", why, keep=False)
        else:
            pending = Pending(request, peer, now, now + min(request.deadline_s, MAX_DEADLINE_S))
            self.waiting.add(request.id, request.uid, pending, memory_bytes(request))
            while excess := self.waiting.excess(request.uid):
                last = self.waiting.pop(self.waiting.newest(excess.uid))
                assert last is not None
                self._refuse(last, "declined", f"mdsd is busy: waiting requests: expected {excess.why}")

    def step_ended(self, id: str, now: float) -> None:
        """Nothing is promised any more, but for closed files whose bytes no report can show yet."""
        self._book.ended(id, now)
        if pending := self.waiting.pop(id):
            self._refuse(pending, "declined", "the job step ended")
        elif running := self._running(id):
            running.ended = True

    def knows(self, id: str) -> bool:
        """Whether something was promised here with this id, or will be. Where it was declined, another mdsd may have
        promised it.
        """
        asked = id in self.waiting or self._running(id) is not None
        return asked or id in self._book.ledger

    def take_told(self, told: PromiseTold, now: float) -> None:
        """Enter what a living step's leader says was promised to it, by an mdsd before this one; once."""
        if self.knows(told.id):
            return
        try:
            stripes = from_bytes(told.osts, told.sizes, told.starts)
        except ValueError as error:
            log.warning("promise %s: %s", told.id, error)
            return
        view = self._system.view(told.fs_name, now)
        size_bytes = sum(stripes.sizes)
        if why := self._limits.of_batch(view).refusal_of_told(told.uid, size_bytes, len(stripes.osts)):
            log.warning("promise %s is not taken over: %s", told.id, why)
            self._book.ended(told.id, now)
            return
        self._book.ledger.promise(
            told.id,
            told.fs_name,
            now + min(told.expires_s, MAX_EXPIRES_S),
            stripes,
            uid=told.uid,
            alive_s=clamped_alive_s(told.alive_s),
            now=now,
        )
        self.told += 1
        self.promised.append((told.id, told.fs_name))

    def _running(self, id: str) -> Pending | None:
        return self.running.parts.get(id) if self.running else None

    def look(self, now: float) -> None:
        """What is done is answered, what is overdue declined, what comes next started."""
        self._finish()
        self._decline_overdue(now)
        self._start_next()

    def why_busy(self, now: float) -> str:
        """Empty where a request need not wait for long, else what it waits for."""
        if self.running is None or now - self.running.since < BUSY_S:
            return ""
        others = f" and {len(self.waiting)} more wait" if self.waiting else ""
        return f"mdsd has computed an allocation for {now - self.running.since:.0f} s{others}"

    def next_due(self) -> float:
        """When the next waiting request is overdue; infinite when none waits."""
        return min((pending.due for _, pending in self.waiting), default=float("inf"))

    def _start_next(self) -> None:
        """Give what waits to the worker, if it is ready, and gate and worker are free."""
        while (
            (first := self.waiting.first())
            and self.running is None
            and self.ready
            and not self._gate.why_closed()
        ):
            fs_name = first[1].request.fs_name
            if self._system.settling(fs_name):
                return
            now = time.monotonic()
            self._system.health.looker.fresh()
            view = self._system.view(fs_name, now)
            waited = self._take(fs_name)
            if not view.osts:
                known = ", ".join(self._system.views.fs_names()) or "none yet"
                for pending in waited:
                    reason = f"expected a file system that an OSS reports ({known}), found {fs_name}"
                    self._refuse(pending, "unknown-fs", reason)
                continue
            limits = self._limits.of_batch(view)
            parts: list[BatchPart] = []
            may: dict[str, Pending] = {}
            for pending in waited:
                if refusal := limits.refusal(pending.request):
                    self._refuse(pending, "declined", refusal)
                else:
                    parts.append(BatchPart(pending.request, limits.take(pending.request)))
                    may[pending.request.id] = pending
            if parts:
                correction = self._corrections.of(fs_name, [part.request for part in parts], now)
                view = msgspec.structs.replace(view, correction=correction)
                age_s = self._system.views.age_s(fs_name, now)
                future = self._worker.submit(self._placing.place, self.settings, view, parts, age_s)
                self.running = Running(may, future, now)
                future.add_done_callback(lambda _future: self._wake())

    def _take(self, fs_name: str) -> list[Pending]:
        """Those whose turn it is, one user after the other, as many as make one batch."""
        taken: list[Pending] = []
        files = 0
        while (first := self.waiting.first()) and len(taken) < MOST_REQUESTS:
            request = first[1].request
            files += len(request.files)
            if request.fs_name != fs_name or (taken and files > MOST_FILES):
                break
            pending = self.waiting.take()
            assert pending is not None
            taken.append(pending)
        return taken

    def _finish(self) -> None:
        """Answer the requests whose allocation is done."""
        if self.running is None or not self.running.future.done():
            return
        done, self.running = self.running, None
        outcomes = done.future.result()
        self.batches.observe(len(outcomes))
        if placed := [outcome.reply.elapsed_s for outcome in outcomes if isinstance(outcome, Placed)]:
            self.seconds.observe(max(placed))
        for pending, outcome in zip(done.parts.values(), outcomes, strict=True):
            if isinstance(outcome, Refused):
                # Servers may be missing still: what cannot be on those that have reported may be on all of them.
                nothing = outcome.reason in GAINS_NOTHING
                unsure = outcome.status == "never" and not nothing and self._system.young()
                self._refuse(pending, "later" if unsure else outcome.status, outcome.reason)
            else:
                self._promise(pending, outcome)

    def _promise(self, pending: Pending, placed: Placed) -> None:
        request = pending.request
        now = time.monotonic()
        if not pending.ended:
            self._book.ledger.promise(
                request.id,
                request.fs_name,
                now + min(request.expires_s, MAX_EXPIRES_S),
                from_bytes(*placed.stripes),
                uid=request.uid,
                alive_s=alive_s(request),
                now=now,
            )
            self.promised.append((request.id, request.fs_name))
        self._book.keep(request.id, request.uid, placed.data, now + _keep_s(request))
        self._tell(pending, placed.reply, placed.data)

    def _decline_overdue(self, now: float) -> None:
        for id, pending in [(id, pending) for id, pending in self.waiting if pending.due <= now]:
            self.waiting.pop(id)
            why = self._gate.why_closed() or (
                "mdsd had no time for it before its deadline"
                if self.ready
                else f"mdsd is starting: {STARTING}"
            )
            self._refuse(pending, "declined", why)

    def _refuse(
        self, pending: Pending, status: messages.Status, reason: str, keep: bool = True, audited: bool = True
    ) -> None:
        request = pending.request
        reply = AllocationReply(request.id, status, reason)
        data = messages.encode(reply)
        if keep:
            self._book.keep(request.id, request.uid, data, time.monotonic() + _keep_s(request))
        self._tell(pending, reply, data, audited)

    def _tell(self, pending: Pending, reply: AllocationReply, data: bytes, audited: bool = True) -> None:
        self.answers[LEFT_TO_LUSTRE if reply.reason in GAINS_NOTHING else reply.status] += 1
        if audited:
            self.audit.write(pending.request, reply, time.monotonic() - pending.arrived)
        self._reply(pending.peer, data)


def _keep_s(request: AllocationRequest) -> float:
    return max(KEEP_REPLY_S, min(request.expires_s, KEEP_REPLY_MOST_S))
