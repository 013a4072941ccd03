"""tarazu-mdsd: knows the state of all OSSs and OSTs, and answers where files should go.

Follows: `OssReport`s of all ossds (bound at `mdsd.statistics`) and requests of clientds (bound at
`mdsd.requests`). Publishes: it answers each request: `AllocationReply`, `Acknowledged`, `ViewReply`,
`StatusReply`; by itself it tells of OSTs of running steps' promises that are dead, refusing, full, sick or well
again (`TargetsChanged`; health.py, target_news.py). Parts answer what is
theirs (parts.py). When an OSS is silent for `mdsd.stale_after_s` its OSTs get
no stripes until it reports again. When this node is busier than `mdsd.cpu_limit` or `mdsd.memory_limit`,
requests wait; one whose deadline comes is `declined`, and the job runs unplaced. Without mdsd files are created
as Lustre always did. Allocations are computed in a process of its own, so that all else is answered meanwhile; what
waits together is placed together. Users take turns. Same id, same answer: a request may be resent as often as its
sender likes, for as long as the reply is kept. It is ready once that process has placed something made up; what is
asked before waits. Everything is bounded, for each user and in all. Promises and replies are in memory: an mdsd that
starts is told by the leaders of living steps what was promised to them, within two of their signs of life, and reports
come at once. A job step that promised to give signs of life and is silent loses its promises. Where several addresses
are set, clients ask the first mdsd that answers; the mdsds know nothing of each other. SIGTERM and SIGINT end it,
SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tarazu import config
from tarazu.config.check import addresses
from tarazu.daemons.mdsd.allocating import STARTING, Allocating
from tarazu.daemons.mdsd.audit import Audit
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.exclusions import Exclusions
from tarazu.daemons.mdsd.filling import Filling
from tarazu.daemons.mdsd.health import Health, HealthChange, text_of_change, word
from tarazu.daemons.mdsd.mds_watch import MdsWatch
from tarazu.daemons.mdsd.parts import MdsdParts
from tarazu.daemons.mdsd.record import Record
from tarazu.daemons.mdsd.rights import Rights
from tarazu.daemons.mdsd.status import Statuses, promises_of, status_of
from tarazu.daemons.mdsd.system import System
from tarazu.daemons.mdsd.target_news import TargetNews
from tarazu.daemons.mdsd.usual_times import UsualTimes
from tarazu.daemons.service import Service, Wakeup, parser, serve
from tarazu.stats.gate import Gate
from tarazu.store.stop import SiteWatch
from tarazu.units import counted
from tarazu.wire.messages import (
    Acknowledged,
    AllocationRequest,
    FileClosed,
    PartRequest,
    PromiseTold,
    Request,
    StatusRequest,
    StepAlive,
    StepEnded,
    TargetsTold,
    ThenRequest,
    ViewReply,
    ViewRequest,
)
from tarazu.wire.security import here
from tarazu.wire.transport import Peer

log = logging.getLogger("tarazu.mdsd")

NAME = "tarazu-mdsd"

LONGEST_WAIT_S = 1.0
LISTENING_S = 0.2
"""While steps live: a wait is no longer."""
PAUSE_S = 0.1
"""A turn of the loop that takes so much longer than its wait is a time in which no message was read."""
LONG_PAUSE_S, HEARD_AGAIN_S = 1.0, 3.0
"""So long after such a pause nobody counts as silent: what was not acknowledged is said again."""
MOST_TRACEBACKS = 20
JUST_NOW_S = 0.5
"""A question is answered again after this."""
READING_S = 0.1
"""So long messages are taken in before anything else is looked at."""


class Mdsd(Service):
    """All state of the daemon. Times without other notice are on the monotonic clock."""

    USED = (
        "keys.",
        "state.",
        "mdsd.",
        "allocate.",
        "part.",
        "run.alive_s",
        "run.stop_file",
        "run.exclude_users",
        "run.only_",
    )

    def __init__(
        self,
        settings: config.Settings,
        wakeup: Wakeup,
        state: str = "",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`state`: where it keeps how the system was, instead."""
        super().__init__(settings, wakeup)
        options = settings.mdsd
        self.monotonic = monotonic
        self.started = monotonic()
        self.allocate, self.weights = settings.allocate, settings.allocate.weights
        audit = Audit(options.audit_log)
        self.gate = Gate(config.root(), options.cpu_limit, options.memory_limit)
        self.site = SiteWatch(settings.run.stop_file)
        self.mds = MdsWatch(config.root())
        self.dead_steps = 0
        self.failed = 0
        """Messages that showed a fault of ours."""
        self.looked_at = 0.0
        self.news_due = 0.0
        self._questions: dict[str, float] = {}
        """Those that were answered just now."""
        self.transport = self.connect("server")
        self.subscriber = self.transport.subscriber(here(addresses(options.statistics)))
        self.replier = self.transport.replier(here(addresses(options.requests)))
        self.book = Book()
        self.listened_at = self.paused_at = self.started
        self.health = Health(config.root(), wakeup.wake)
        self.news = TargetNews(self.book.ledger, self.replier.reply)
        directory = state or settings.state.mdsd
        with contextlib.suppress(OSError):  # what would be kept there is learned again
            Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        filling = Filling(directory, settings.allocate.weights)
        usual = UsualTimes(directory)
        self.system = System(settings, self.book.ledger, self.subscriber.counts, self.health, filling, usual)
        self.allocating = Allocating(
            settings, self.book, self.system, self.gate, self.replier.reply, audit, wake=wakeup.wake
        )
        self.record = Record(directory, self.replier.reply, wakeup.wake)
        self.statuses = Statuses(
            lambda now: status_of(self, now), lambda ids: promises_of(self, ids), self.replier.reply
        )
        self.rights = Rights(settings.keys.uids == "required", self._owner)
        self.parts = MdsdParts(
            settings, self._note_of_part, wakeup.wake, lambda: self.site.why, self._usable_osts
        )
        self.health.looker.beside = self.parts.look
        self.system.request_s = self.parts.request_s
        keyed = "with keys" if self.transport.curve else "without keys"
        log.info(
            "statistics at %s, requests at %s (%s)", self.subscriber.address, self.replier.address, keyed
        )

    def begin(self) -> None:
        self.site.start()
        self.health.start()
        self.mds.start()

    def starting(self) -> str:
        return "" if self.allocating.ready else STARTING

    def turn(self, now: float) -> None:
        # Suspended, held up, or without a processor: that was our silence, not that of steps or servers.
        if (paused_s := now - self.listened_at - self.waited_s) > PAUSE_S:
            self.book.ledger.excuse(paused_s)
            self.system.excuse(paused_s)
            self.parts.excuse(paused_s)
            self.paused_at = now if paused_s > LONG_PAUSE_S else self.paused_at
        self.listened_at = now
        drained = self._receive(now)
        self.gate.sample(now)
        self.gate.held_by = self.site.why
        self.allocating.look_at_process(now)
        self.allocating.look(now)
        self._look_at_health(now)
        self._pass_time(now, drained)
        self.record.look(self.system, self.mds.load, now)
        self._answer_statuses(drained)
        self.parts.turn(now, listening=drained and now - self.paused_at > HEARD_AGAIN_S)

    def _owner(self, id: str) -> int | None:
        """The user whose allocation this is, or to which a part keeps something."""
        owner = self.allocating.owner(id)
        return self.parts.owner(id) if owner is None else owner

    def _usable_osts(self, fs_name: str) -> int:
        return sum(ost.usable for ost in self.system.view(fs_name, self.monotonic()).osts)

    def take_over(self, settings: config.Settings) -> None:
        """Raises ConfigError, and changes nothing, for settings that cannot be."""
        exclusions = Exclusions(settings.mdsd.exclude)
        self.allocating.take_over(settings)
        self.system.take_over(settings, exclusions)
        self.parts.take_over(settings)
        self.allocate, self.weights = settings.allocate, settings.allocate.weights
        self.gate.cpu_limit, self.gate.memory_limit = settings.mdsd.cpu_limit, settings.mdsd.memory_limit

    def _receive(self, now: float) -> bool:
        """Take in what has come; False when there may be more. A flood must not keep us from the rest."""
        while time.monotonic() - now < READING_S:
            report, asked = self.subscriber.receive(0), self.replier.receive(0)
            try:
                if report:
                    permitted = self.rights.permitted(self.subscriber.sender, report, now)
                    if (taken := self.system.take_in(permitted, now)) is not None:
                        self.record.take_in(permitted)
                        if taken.is_new:
                            self.parts.reported(self.subscriber.sender, permitted, taken, self.rights, now)
                if asked:
                    self.handle(*asked, now)
            except Exception:
                # It would come again and again, and must not take the daemon down each time.
                self._failed("a message of %s failed", asked[0].name if asked else "an OSS")
            if not report and not asked:
                return True
        return False

    def _answer_statuses(self, idle: bool) -> None:
        try:
            self.statuses.look(idle)
        except Exception:
            self.statuses.forget()
            self._failed("a status failed: who asks for one gets none")

    def _note_of_part(self, name: str, fields: Mapping[str, object]) -> None:
        self.allocating.audit.part(name, fields)

    def _failed(self, text: str, *of: str) -> None:
        self.failed += 1
        if self.failed <= MOST_TRACEBACKS:
            log.exception(text, *of)

    def release(self) -> None:
        self.health.stop()
        self.mds.close()
        self.allocating.close()
        self.parts.close()
        self.record.close()
        self.system.usual.close()

    def handle(self, peer: Peer, message: Request, now: float) -> None:
        """Answer one request, or put it in the queue."""
        if isinstance(message, AllocationRequest):
            if refusal := self.rights.refusal(peer, message):
                self.replier.reply(peer, self.allocating.turn_down(peer, message, refusal))
                return
            self._hear(message.id)
            self.allocating.ask(peer, message, now)
        elif isinstance(message, StatusRequest):
            self._tell_pools(peer, message)
            self.statuses.ask(peer, message)
        elif isinstance(message, ViewRequest):
            self._question(peer, message)
        elif isinstance(message, ThenRequest):
            self.record.ask(peer, message, self._usable_osts(message.fs_name))
        elif isinstance(message, PartRequest):
            why_not = self.allocating.users.why_not
            self.parts.ask(peer, message, now, self.rights, why_not, self.replier.reply)
        elif isinstance(message, PromiseTold):
            if self.rights.may_tell(peer, message.uid, "promises"):
                self.allocating.take_told(message, now)
                self.news.heard((message.id,), peer, now)
            self.replier.reply(peer, Acknowledged(message.message_id))
        else:
            unknown: tuple[str, ...] = ()
            if heeded := self.rights.heeded(peer, message):
                self._take_notice(peer, heeded, now)
                if isinstance(heeded, StepAlive):
                    unknown = tuple(id for id in heeded.ids if not self.allocating.knows(id))
            self.replier.reply(peer, Acknowledged(message.message_id, unknown))

    def _question(self, peer: Peer, question: ViewRequest) -> None:
        """Answered, but not twice in a moment: when we are slow, what was sent again meanwhile waits behind it."""
        now = time.monotonic()
        if now - self._questions.get(question.message_id, -math.inf) < JUST_NOW_S:
            return
        self._tell_pools(peer, question)
        self.replier.reply(peer, self._reply_to(question, now))
        self._questions[question.message_id] = time.monotonic()

    def _tell_pools(self, peer: Peer, question: ViewRequest | StatusRequest) -> None:
        """Of pools clients tell, who mount the file system."""
        if peer.admission is None or peer.admission.role == "client":
            self.system.views.tell_pools(question.pools)

    def _look_at_health(self, now: float) -> None:
        """Running steps get the news of the OSTs that they were promised."""
        promised = bool(len(self.book.ledger))
        by_fs: dict[str, list[HealthChange]] = {}
        for change in self.health.update(self.system.reported, now, promised=promised):
            by_fs.setdefault(change.target[0], []).append(change)
        for fs_name, changes in by_fs.items():
            told = self.news.changed(fs_name, {c.target[1]: word(c.now) for c in changes})
            for change in changes:
                log.warning("%s", text_of_change(change))
                self.allocating.audit.health(change, told)
        for id, fs_name in self.allocating.promised:
            self.news.promised(id, fs_name, self.health.avoided(fs_name))
        self.allocating.promised.clear()
        self.news_due = now + self.news.tell(now)

    def _reply_to(self, question: ViewRequest, now: float) -> ViewReply:
        views = self.system.views
        known = views.fs_names()
        fs_name = question.fs_name or (known[0] if len(known) == 1 else "")
        return ViewReply(
            question.message_id,
            view=self.system.view(fs_name, now) if fs_name in known else None,
            age_s=views.age_s(fs_name, now),
            weights=self.weights,
            least_gain=self.allocate.least_gain,
            control=self.allocate.control,
            why_closed=self.gate.why_closed() or self.allocating.why_busy(now),
            fs_names=tuple(known),
            stopped=self.site.why,
        )

    def _take_notice(
        self, peer: Peer, notice: FileClosed | StepEnded | StepAlive | TargetsTold, now: float
    ) -> None:
        if isinstance(notice, TargetsTold):
            self.news.told(notice.ids, notice.generation)
        elif isinstance(notice, FileClosed):
            self._hear(notice.id)
            self.news.heard((notice.id,), peer, now)
            release_at = now + 2 * self.system.interval_s()
            for index, size_bytes in notice.files:
                self.book.ledger.closed(notice.id, index, size_bytes, now, release_at)
        elif isinstance(notice, StepEnded):
            self.allocating.step_ended(notice.id, now)
            self.parts.ended(notice.id)
        else:
            self._hear(*notice.ids)
            self.news.heard(notice.ids, peer, now)

    def _hear(self, *ids: str) -> None:
        now = self.monotonic()
        self.parts.alive(ids, now)
        for id in ids:
            if self.book.hear(id, now):
                log.info("job step of %s reports again: its open files are promised again", id)
                for fs_name in self.system.views.fs_names():
                    self.news.promised(id, fs_name, self.health.avoided(fs_name))

    def _pass_time(self, now: float, drained: bool) -> None:
        """Once a second: promises and kept replies whose time is over, and steps that fell silent."""
        if now - self.looked_at < 1.0:
            return
        self.looked_at = now
        self._questions = {id: at for id, at in self._questions.items() if now - at < JUST_NOW_S}
        self.manager.status(self._in_a_line())
        self.system.learn(now)
        if not self.system.may_settle():
            self.system.look_at_filling()
        # What a step has said may still wait to be read, or to be sent again.
        listening = drained and now - self.paused_at > HEARD_AGAIN_S
        for dead in self.book.pass_time(now, listening=listening):
            if not dead.again:
                self.dead_steps += 1
                self.allocating.audit.died(dead)

    def _in_a_line(self) -> str:
        """For `systemctl status`."""
        promises, stripes = self.book.ledger.numbers()
        why = self.starting() or self.gate.why_closed()
        return (
            f"{counted(len(self.system.views), 'server')}; "
            f"{counted(promises, 'promise')} of {counted(stripes, 'stripe')}; "
            f"{len(self.allocating.waiting)} requests wait{f': {why}' if why else ''}"
        )

    def may_wait_s(self, now: float) -> float:
        # With requests waiting, look again soon at gate and newcomers.
        longest_s = 0.1 if self.allocating.waiting and self.system.may_settle() else LONGEST_WAIT_S
        # Of a pause within a wait nobody knows.
        longest_s = min(longest_s, LISTENING_S) if len(self.book.ledger) else longest_s
        longest_s = min(longest_s, self.allocating.next_due() - now, self.news_due - now)
        longest_s = min(longest_s, self.parts.due() - now)
        return min(longest_s, self.statuses.due() - now, self.record.next_s(now))


def settings_from(options: argparse.Namespace) -> config.Settings:
    """The configuration with the command line's options on top. Raises ConfigError."""
    own = {name: getattr(options, name) for name in ("statistics", "requests", "audit_log")}
    settings = config.load(options.config)
    settings = config.override(settings, "mdsd", **own)
    return config.override(settings, "keys", directory=options.keys)


def command_line() -> argparse.ArgumentParser:
    """Its options."""
    options = parser(NAME, "Follow the statistics of all OSSs and answer allocation requests.")
    options.add_argument("--statistics", metavar="ADDRESS", help="bind for statistics, tcp://mds1:5770")
    options.add_argument("--requests", metavar="ADDRESS", help="bind for requests, tcp://mds1:5771")
    options.add_argument(
        "--state", metavar="DIR", default="", help="where it keeps how the system was, /var/lib/tarazu/mdsd"
    )
    options.add_argument("--audit-log", metavar="FILE", help="one line per allocation (default: stderr)")
    return options


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def make(settings: config.Settings, wakeup: Wakeup) -> Mdsd:
        # Reports make objects by the thousand and no cycles: at 80,000 OSTs each walk of the collector takes 0.3 s.
        gc.set_threshold(100_000, 20, 20)
        return Mdsd(settings, wakeup, chosen.state)

    return serve(NAME, chosen, lambda: settings_from(chosen), make)


if __name__ == "__main__":
    sys.exit(main())
