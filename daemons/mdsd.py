"""tarazu-mdsd: knows the state of all OSSs and OSTs, and answers where files should go.

Follows: `OssReport`s of all ossds (bound at `mdsd.statistics`) and requests of clientds (bound at
`mdsd.requests`). Publishes: nothing by itself; it answers each request: `AllocationReply`, `Acknowledged`,
`ViewReply`, `StatusReply`. When an OSS is silent for `mdsd.stale_after_s` its OSTs get no stripes until it reports
again. When this node is busier than `mdsd.cpu_limit` or `mdsd.memory_limit`, requests wait; one whose
deadline comes is `declined`, and the job runs unplaced. Without mdsd files are created as Lustre always
did. Allocations run one at a time in a worker thread, so that statistics and status are served meanwhile.
Users take turns. Same id, same answer: a request may be resent as often as its sender likes, for as long as
the reply is kept. Everything is kept in memory, and bounded there, for each user and in all; after a restart
reports come at once, promises made before are forgotten. A job step that promised to give signs of life and
is silent loses its promises. SIGTERM and SIGINT end it, SIGHUP does nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tarazu import config
from tarazu.daemons.allocation_requests import (
    MAX_DEADLINE_S,
    MAX_EXPIRES_S,
    MAX_NAME_CHARACTERS,
    alive_s,
    memory_bytes,
    promises,
    reply_of,
    why_malformed,
)
from tarazu.daemons.audit import Audit
from tarazu.daemons.exclusions import Exclusions
from tarazu.daemons.limits import PromiseLimits, ReportLimits
from tarazu.daemons.mdsd_status import status_of
from tarazu.daemons.per_user import QUEUE_LIMITS, REPLY_LIMITS, PerUser
from tarazu.daemons.process import Wakeup, parser, run
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.model import Allocation, CreateRequest, SystemView
from tarazu.stats.gate import Gate
from tarazu.stats.speed import SpeedEstimator
from tarazu.stats.view import ViewBuilder
from tarazu.store.stop_watch import SiteWatch
from tarazu.wire import messages
from tarazu.wire.messages import (
    Acknowledged,
    AllocationReply,
    AllocationRequest,
    FileClosed,
    OssReport,
    Request,
    StatusReply,
    StatusRequest,
    StepAlive,
    StepEnded,
    ViewReply,
    ViewRequest,
)
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import Peer

if TYPE_CHECKING:
    from tarazu.allocate.ledger import Stripes

log = logging.getLogger("tarazu.mdsd")

NAME = "tarazu-mdsd"

KEEP_REPLY_S = 600.0
"""A reply is kept at least this long for a request that is resent."""
KEEP_REPLY_MOST_S = 86_400.0
SETTLE_S = 3.0
QUIET_S = 0.3
"""For `SETTLE_S` after the start, no allocation before no new server has come for `QUIET_S`."""
DEFAULT_INTERVAL_S = 60.0
LONGEST_WAIT_S = 1.0
READING_S = 0.5
"""So long messages are taken in before anything else is looked at."""


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
    pending: Pending
    files: Sequence[CreateRequest]
    view_age_s: float
    future: Future[tuple[Allocation, Stripes]]


class Kept(NamedTuple):
    """A reply for a request that is sent again."""

    data: bytes
    """Encoded: a twentieth of its structs' memory."""
    until: float


class Mdsd:
    """All state of the daemon. Times without other notice are on the monotonic clock."""

    def __init__(self, settings: config.Settings, wakeup: Wakeup) -> None:
        from tarazu.allocate.ledger import Ledger
        from tarazu.allocate.policies import make
        from tarazu.allocate.solvers import warm

        options = settings.mdsd
        self.wakeup = wakeup
        self.started = time.monotonic()
        self.policy = make(settings.allocate.policy, seed=settings.allocate.seed, weights=settings.allocate)
        self.weights = config.Weights(
            **{f.name: getattr(settings.allocate, f.name) for f in dataclasses.fields(config.Weights)}
        )
        self.ledger = Ledger()
        self.exclusions = Exclusions(settings.mdsd.exclude)
        self.promise_limits = PromiseLimits(settings.mdsd.user_share, self.ledger)
        speeds = SpeedEstimator(options.speed_forget_s)
        self.views = ViewBuilder(options.stale_after_s, options.root, speeds)
        self.gate = Gate(options.root, options.cpu_limit, options.memory_limit)
        self.site = SiteWatch(settings.run.stop_file)
        self.audit = Audit(options.audit_log)
        self.report_limits = ReportLimits()
        self.waiting: PerUser[Pending] = PerUser(QUEUE_LIMITS)
        self.running: Running | None = None
        self.answered: PerUser[Kept] = PerUser(REPLY_LIMITS)
        self.answers: Counter[str] = Counter()
        self.dead_steps = 0
        self.listened_at = self.started
        self.expired_at = 0.0
        self.newcomer_at = self.started
        self.transport = ZmqTransport(
            curve_for("server", settings.keys.directory, settings.keys.insecure),
            insecure=settings.keys.insecure,
            wake_fd=wakeup.fd,
        )
        self.subscriber = self.transport.subscriber(options.statistics)
        self.replier = self.transport.replier(options.requests)
        self.worker = ThreadPoolExecutor(1, "tarazu-allocate")
        if self.policy.name == "tarazu":
            self.worker.submit(warm)
        keyed = "with keys" if self.transport.curve else "without keys"
        log.info(
            "statistics at %s, requests at %s (%s)", self.subscriber.address, self.replier.address, keyed
        )

    def loop(self) -> None:
        self.site.start()
        while not self.wakeup.stopping:
            self.transport.wait(self._next_wait_s())
            self.wakeup.drain()
            now = time.monotonic()
            if now - self.listened_at > 2 * LONGEST_WAIT_S:
                # Suspended, or held up by a large message: that was our silence, not the steps'.
                self.ledger.excuse(now - self.listened_at - LONGEST_WAIT_S)
            self.listened_at = now
            drained = self._receive(now)
            self.gate.sample(now)
            self.gate.held_by = self.site.why
            self._finish()
            self._decline_overdue(now)
            self._start_next()
            self._expire(now, drained)

    def _receive(self, now: float) -> bool:
        """Take in what has come; False when there may be more. A flood must not keep us from the rest."""
        while time.monotonic() - now < READING_S:
            report, asked = self.subscriber.receive(0), self.replier.receive(0)
            if report:
                self.take_in(report, now)
            if asked:
                self.handle(*asked, now)
            if not report and not asked:
                return True
        return False

    def close(self) -> None:
        self.worker.shutdown(wait=False, cancel_futures=True)
        self.transport.close()

    def take_in(self, report: OssReport, now: float) -> None:
        name = report.oss[:MAX_NAME_CHARACTERS]
        if expected := self.report_limits.refusal(report):
            self.subscriber.counts.drop(name, expected)
            return
        newcomer = report.oss not in self.views
        if not self.views.update(self.report_limits.trimmed(report), time.time()):
            self.subscriber.counts.drop(name, "a report with possible values")
            return
        self.report_limits.note(report)
        if newcomer:
            self.newcomer_at = now

    def handle(self, peer: Peer, message: Request, now: float) -> None:
        """Answer one request, or put it in the queue."""
        if isinstance(message, AllocationRequest):
            self._handle_allocation(peer, message, now)
        elif isinstance(message, ViewRequest | StatusRequest):
            self.views.tell_pools(message.pools)
            self.replier.reply(peer, self._reply_to(message, now))
        else:
            self._take_notice(message, now)
            self.replier.reply(peer, Acknowledged(message.message_id))

    def _reply_to(self, question: ViewRequest | StatusRequest, now: float) -> ViewReply | StatusReply:
        if isinstance(question, StatusRequest):
            return StatusReply(question.message_id, status_of(self, now))
        now_s, known = time.time(), self.views.fs_names()
        fs_name = question.fs_name or (known[0] if len(known) == 1 else "")
        return ViewReply(
            question.message_id,
            view=self.view(fs_name, now_s) if fs_name in known else None,
            age_s=self.views.age_s(fs_name, now_s),
            weights=self.weights,
            why_closed=self.gate.why_closed(),
            fs_names=tuple(known),
        )

    def _take_notice(self, notice: FileClosed | StepEnded | StepAlive, now: float) -> None:
        if isinstance(notice, FileClosed):
            self._hear(notice.id, now)
            release_at = now + 2 * self._interval_s()
            for index, size_bytes in notice.files if notice.id in self.ledger else ():
                self.ledger.closed(notice.id, index, size_bytes, now, release_at)
        elif isinstance(notice, StepEnded):
            self._step_ended(notice)
        else:
            for id in notice.ids:
                self._hear(id, now)

    def _hear(self, id: str, now: float) -> None:
        if self.ledger.heard(id, now):
            log.info("job step of %s speaks again: what it has open is promised again", id)

    def _handle_allocation(self, peer: Peer, request: AllocationRequest, now: float) -> None:
        self._hear(request.id, now)
        if kept := self.answered.get(request.id):
            self.replier.reply(peer, kept.data)
        elif waiting := self.waiting.get(request.id):
            waiting.peer = peer
        elif self.running and self.running.pending.request.id == request.id:
            self.running.pending.peer = peer
        elif wrong := why_malformed(request):
            # Nothing to keep: sent again it is as wrong as before.
            self._answer(Pending(request, peer, now, now), AllocationReply(request.id, "never", wrong), False)
        else:
            pending = Pending(request, peer, now, now + min(request.deadline_s, MAX_DEADLINE_S))
            self.waiting.add(request.id, request.uid, pending, memory_bytes(request))
            while excess := self.waiting.excess(request.uid):
                last = self.waiting.pop(self.waiting.newest(excess.uid))
                assert last is not None
                reason = f"mdsd is busy: waiting requests: expected {excess.why}"
                self._answer(last, AllocationReply(last.request.id, "declined", reason))

    def _step_ended(self, message: StepEnded) -> None:
        """Nothing is promised any more, but for closed files whose bytes no report can show yet."""
        self.ledger.ended(message.id)
        if pending := self.waiting.pop(message.id):
            self._answer(pending, AllocationReply(message.id, "declined", "the job step ended"))
        elif self.running and self.running.pending.request.id == message.id:
            self.running.pending.ended = True

    def _start_next(self) -> None:
        """Give the next user's oldest request to the worker, if gate and worker are free."""
        while (first := self.waiting.first()) and self.running is None and not self.gate.why_closed():
            if self._settling(first[1].request.fs_name):
                return
            pending = self.waiting.take()
            assert pending is not None
            request = pending.request
            now_s = time.time()
            view = self.view(request.fs_name, now_s)
            if not view.osts:
                known = ", ".join(self.views.fs_names()) or "none yet"
                reason = f"expected a file system that an OSS reports ({known}), found {request.fs_name}"
                self._answer(pending, AllocationReply(request.id, "unknown-fs", reason))
                continue
            if refusal := self.promise_limits.refusal(request, view):
                self._answer(pending, AllocationReply(request.id, "declined", refusal))
                continue
            files = [CreateRequest(f.size_bytes, request.layouts[f.layout]) for f in request.files]
            future = self.worker.submit(self._allocate, view, files, [f.wave for f in request.files])
            self.running = Running(pending, files, self.views.age_s(request.fs_name, now_s), future)
            future.add_done_callback(lambda _future: self.wakeup.wake())

    def view(self, fs_name: str, now_s: float) -> SystemView:
        """The system as the allocator sees it: with promises, without what the site excludes."""
        promised, written = self.ledger.promised(fs_name), self.ledger.written(fs_name)
        return self.exclusions.apply(self.views.view(fs_name, now_s, promised, written))

    def _settling(self, fs_name: str) -> bool:
        """True just after the start, while servers are still coming back: a part must not get all."""
        now = time.monotonic()
        if now - self.started > SETTLE_S:
            return False
        return fs_name not in self.views.fs_names() or now - self.newcomer_at < QUIET_S

    def _allocate(
        self, view: SystemView, files: Sequence[CreateRequest], of_wave: Sequence[int]
    ) -> tuple[Allocation, Stripes]:
        """In the worker thread."""
        from tarazu.allocate.ledger import pack

        begin = time.monotonic()
        allocation = self.policy.allocate(view, files, of_wave)
        stripes = pack(promises(files, allocation))
        return msgspec.structs.replace(allocation, elapsed_s=time.monotonic() - begin), stripes

    def _finish(self) -> None:
        """Answer the request whose allocation is done."""
        if self.running is None or not self.running.future.done():
            return
        done, self.running = self.running, None
        request = done.pending.request
        try:
            allocation, stripes = done.future.result()
        except InfeasibleRequest as error:
            self._answer(done.pending, AllocationReply(request.id, "never", str(error)))
            return
        except InsufficientResources as error:
            self._answer(done.pending, AllocationReply(request.id, "later", str(error)))
            return
        except Exception:
            # A fault of the allocator must not take the daemon down: the job runs unplaced.
            log.exception("allocation %s failed", request.id)
            self._answer(done.pending, AllocationReply(request.id, "declined", "the allocator failed"))
            return
        if not done.pending.ended:
            now = time.monotonic()
            self.ledger.promise(
                request.id,
                request.fs_name,
                now + min(request.expires_s, MAX_EXPIRES_S),
                stripes,
                uid=request.uid,
                alive_s=alive_s(request),
                now=now,
            )
        self._answer(done.pending, reply_of(request, allocation, done.view_age_s))

    def _decline_overdue(self, now: float) -> None:
        for id, pending in [(id, pending) for id, pending in self.waiting if pending.due <= now]:
            self.waiting.pop(id)
            why = self.gate.why_closed() or "mdsd had no time for it before its deadline"
            self._answer(pending, AllocationReply(id, "declined", why))

    def _answer(self, pending: Pending, reply: AllocationReply, keep: bool = True) -> None:
        now = time.monotonic()
        request, data = pending.request, messages.encode(reply)
        if keep:
            keep_s = max(KEEP_REPLY_S, min(request.expires_s, KEEP_REPLY_MOST_S))
            self.answered.add(reply.id, request.uid, Kept(data, now + keep_s), len(data))
            while excess := self.answered.excess(request.uid):
                self.answered.pop(self.answered.oldest(excess.uid))
        self.answers[reply.status] += 1
        self.audit.write(request, reply, now - pending.arrived)
        self.replier.reply(pending.peer, data)

    def _expire(self, now: float, drained: bool) -> None:
        """Once a second: promises and kept replies whose time is over, and steps that fell silent."""
        if now - self.expired_at < 1.0:
            return
        self.expired_at = now
        self.ledger.expire(now)
        # What a step has said may still wait to be read.
        for dead in self.ledger.died(now) if drained else ():
            if not dead.again:
                self.dead_steps += 1
                self.audit.died(dead)
        for id in [id for id, kept in self.answered if kept.until <= now]:
            self.answered.pop(id)

    def _next_wait_s(self) -> float:
        now = time.monotonic()
        # With requests waiting, look again soon at gate and newcomers.
        longest_s = 0.1 if self.waiting and now - self.started < SETTLE_S else LONGEST_WAIT_S
        return max(0.0, min([longest_s, *(pending.due - now for _, pending in self.waiting)]))

    def _interval_s(self) -> float:
        intervals = [report.interval_s for report, _ in self.views.servers().values()]
        return max((i for i in intervals if i > 0), default=DEFAULT_INTERVAL_S)


def settings_from(options: argparse.Namespace) -> config.Settings:
    """The configuration with the command line's options on top. Raises ConfigError."""
    own = {name: getattr(options, name) for name in ("root", "statistics", "requests", "audit_log")}
    settings = config.override(config.load(options.config), "mdsd", **own)
    return config.override(settings, "keys", directory=options.keys)


def main(argv: list[str] | None = None) -> int:
    options = parser(NAME, "Follow the statistics of all OSSs and answer allocation requests.")
    options.add_argument("--statistics", metavar="ADDRESS", help="bind for statistics, tcp://mds1:5770")
    options.add_argument("--requests", metavar="ADDRESS", help="bind for requests, tcp://mds1:5771")
    options.add_argument("--audit-log", metavar="FILE", help="one line per allocation (default: stderr)")
    chosen = options.parse_args(argv)

    def body() -> int:
        settings = settings_from(chosen)
        with Wakeup() as wakeup, contextlib.closing(Mdsd(settings, wakeup)) as mdsd:
            mdsd.loop()
        log.info("stopped")
        return 0

    return run(NAME, chosen, body)


if __name__ == "__main__":
    sys.exit(main())
