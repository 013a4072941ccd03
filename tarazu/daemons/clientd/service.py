"""tarazu-clientd: prediction, configuration and the interaction database of a client node.

Answers `tarazu run` and the other commands on a Unix socket (`clientd.socket`), one thread per conversation;
who asks is known from the socket's credentials, and sees only his own rows (root sees all). Follows mdsd
(`mdsd.requests`): allocation requests are resent until answered or the deadline is over. When mdsd is
silent: the forecast is stored without OSTs and the job runs unplaced until it asks again. Conversations,
memory, descriptors and turns to plan are shared out among users (shares.py); who finds no room is told
`Busy`. What mdsd must hear about running and ended steps goes out by itself (notices.py, reports.py). A
conversation that fails ends alone; the database is written in transactions, so that a kill at any time leaves
the last complete state.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import math
import os
import resource
import socket
import stat
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tarazu import config
from tarazu.config import without_password
from tarazu.config.taking_part import Who, user_of, why_not
from tarazu.daemons.clientd.leaders import MAX_WAITING, Leaders
from tarazu.daemons.clientd.notices import Notices
from tarazu.daemons.clientd.planner import Planner
from tarazu.daemons.clientd.reports import ReportWorkers
from tarazu.daemons.clientd.stored_plans import StoredPlans
from tarazu.daemons.secrets import check_option, with_password
from tarazu.daemons.service import Service, Wakeup, installed_version, parser, serve
from tarazu.daemons.shares import Share, Turns
from tarazu.errors import Busy, ConfigError, StoreError, TarazuError, Unavailable, WireError
from tarazu.figures import Histogram
from tarazu.left import LEFT_TO_LUSTRE
from tarazu.part import Live, Part
from tarazu.store.stop import SiteWatch
from tarazu.wire import local
from tarazu.wire.bounds import MAX_ID_CHARACTERS, MAX_PART_BYTES
from tarazu.wire.channel import Channel, peer_uid
from tarazu.wire.messages import PromiseTold, ThenReply, ViewReply
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.clientd")

NAME = "tarazu-clientd"
REQUEST_S = 5.0
"""For what opens a conversation to come."""
TURN_S = 20.0
"""Longest wait for a turn to plan; then the leader is told to ask again."""
CONVERSATION_S = 90.0
"""From its turn on; mdsd's answer is waited for less long."""
EXCHANGE_S = 20.0
"""For the leader to look at its directories, and to read its plan."""
SPEAK_S = 0.4
"""A sign of life of a leader that begins to wait goes out within a quarter of this."""
DYING_S = 2.0
PLANNED = ("planned", "forecast", "nothing", LEFT_TO_LUSTRE, "declined", "unavailable")
"""What comes of plans mostly: counted from nought, so that a rate is seen at once."""
MAX_CONVERSATIONS = 256
MAX_FRAMES_BYTES = 64 << 20
"""Of all conversations together: what was received and not yet answered."""
KEPT_DESCRIPTORS = 512 + MAX_WAITING
"""For sockets and files of our own, and leaders that wait; the rest may be histories of users."""
PLANS_AT_ONCE = 8
PREPARES_AT_ONCE = 2
"""Of two users. Who finds no turn is passed over: his next run begins with its histories."""
QUESTIONS_AT_ONCE = 8
BYTES_A_TURN = 8 << 20
"""Of a plan's histories: a plan of long ones counts for several, so that few of these are in memory at once."""

MOST_NOTED = 1000
"""Problems with histories that are remembered, so that each is logged once."""


class Clientd(Service):
    """All state of the daemon."""

    USED = (
        "keys.",
        "clientd.",
        "layout.",
        "predict.",
        "mdsd.requests",
        "run.stop_file",
        "run.include",
        "run.exclude",
        "run.only_",
        "part.",
    )

    def __init__(self, settings: config.Settings, wakeup: Wakeup, name: str = "") -> None:
        """`name`: its host's by default."""
        super().__init__(settings, wakeup)
        self.name = name or socket.gethostname()
        self.started_s = time.time()
        self.parts: Live[Part] = Live(lambda part: part)
        self.planner = Planner(settings, self.parts)
        self.site = SiteWatch(settings.run.stop_file)
        self.stored = StoredPlans(settings.clientd.database)
        self.mdsd = self.planner.mdsd
        self.leaders = Leaders()
        self.notices = Notices(self.mdsd.transport, self.mdsd.servers, self.leaders.tell)
        self.reports = ReportWorkers(self.stored, self.notices)
        self.counts = {"plans": 0, "reports": 0, "questions": 0, "progress": 0, "failed": 0, "turned_away": 0}
        self.planned: Counter[str] = Counter(dict.fromkeys(PLANNED, 0))
        """Status of a plan → how many."""
        self.plan_seconds = Histogram()
        self.database_errors = 0
        self.conversations = Share(MAX_CONVERSATIONS)
        self.frames = Share(MAX_FRAMES_BYTES)
        self.descriptors = Share(max(2 * local.MAX_DESCRIPTORS, more_descriptors() - KEPT_DESCRIPTORS))
        self.plans = Turns(PLANS_AT_ONCE)
        self.prepares = Turns(PREPARES_AT_ONCE)
        self.questions = Turns(QUESTIONS_AT_ONCE)
        self._noted: set[str] = set()
        self._said = SaidOnce(log)
        self._lock = threading.Lock()
        self.listener = listen(Path(settings.clientd.socket))
        self.watch(self.listener.fileno(), self._accept)
        log.info("%s answers on %s", self.name, settings.clientd.socket)

    def begin(self) -> None:
        threading.Thread(target=self.planner.keep_ready, args=(self.wakeup.wake,), daemon=True).start()
        self.site.start()
        self.notices.start()
        self.reports.start()

    def starting(self) -> str:
        return "" if self.planner.ready.is_set() else "loads what forecasts need"

    def take_over(self, settings: config.Settings) -> None:
        self.planner.take_over(settings)

    def _accept(self) -> None:
        try:
            connection = self.listener.accept()[0]
        except BlockingIOError:
            return
        except OSError as error:
            log.warning("cannot start a conversation: %s", error)
            time.sleep(0.1)  # out of descriptors: the next one would fail at once too
            return
        uid = peer_uid(connection)
        channel = Channel(
            connection,
            max_bytes=local.MAX_REQUEST_BYTES,
            deadline_s=REQUEST_S,
            room=self.frames.of(uid),
            descriptor_room=self.descriptors.of(uid),
        )
        if not self.conversations.take(uid):
            self._turn_away(channel)
            channel.close()
            return
        try:
            threading.Thread(target=self._converse, args=(channel, uid), daemon=True).start()
        except RuntimeError as error:
            log.warning("cannot start a conversation: %s", error)
            self._turn_away(channel)
            channel.close()
            self.conversations.give(uid)

    def _converse(self, channel: Channel, uid: int) -> None:
        try:
            with channel:
                try:
                    self._answer(channel, channel.receive(), uid)
                except Busy as busy:
                    log.info("uid %d: %s", uid, busy)
                    self._turn_away(channel)
                except TarazuError as error:
                    self.database_errors += isinstance(error, StoreError)
                    self._fail(channel, str(error))
                except Exception as error:
                    log.exception("a conversation failed")
                    self._fail(channel, f"{type(error).__name__}: {error}")
        finally:
            self.conversations.give(uid)

    def _turn_away(self, channel: Channel) -> None:
        """Say that there is no room, without waiting for anybody."""
        self.counts["turned_away"] += 1
        channel.limit(0.1)
        with contextlib.suppress(TarazuError):
            channel.send(local.Busy(min(30.0, 1.0 + self.plans.waiting / 4)))

    def _fail(self, channel: Channel, reason: str) -> None:
        self.counts["failed"] += 1
        # A user who sends nonsense must not fill the log.
        self._said.warning(reason)
        channel.limit(REQUEST_S)
        with contextlib.suppress(TarazuError):
            channel.send(local.Failed(reason))

    def _note(self, problems: Sequence[str]) -> None:
        """Log what is wrong with a user's histories, once: a plan is asked for again and again."""
        for problem in problems:
            with self._lock:
                known = problem in self._noted
                if len(self._noted) >= MOST_NOTED:
                    self._noted.clear()
                self._noted.add(problem)
            if not known:
                log.warning("%s", " ".join(problem.split()))

    def _answer(self, channel: Channel, message: local.LocalMessage, uid: int) -> None:
        match message:
            case local.PlanRequest():
                self.counts["plans"] += 1
                channel.limit(TURN_S + CONVERSATION_S)
                _tell_stage(channel, message, "turn")
                with self.plans.turn(uid, turns_of(channel.descriptors), TURN_S):
                    self._plan(channel, message, uid)
            case local.StepProgress():
                self.counts["progress"] += 1
                self._progress(message, uid)
                self._hear_promises(channel, message, uid)
                channel.send(local.Done())
            case local.PartTold():
                self._part_told(message, uid)
                channel.send(local.Done())
            case local.TargetsWait():
                check_ids(message.request_ids)
                check_ids((message.fs_name,))
                self.leaders.wait(uid, message, channel)
                self.notices.alive(uid, message.request_ids, SPEAK_S)  # so mdsd knows whom to tell
            case local.StepReport():
                self.counts["reports"] += 1
                if len(channel.descriptors) != 1:
                    raise WireError("clientd socket", "the run with its report", len(channel.descriptors))
                check_ids(message.request_ids)
                check_plans(message.plan_ids)
                self.reports.put(uid, message, channel.descriptors[0])
                channel.descriptors = []
                channel.send(local.Done())
            case local.PrepareNext():
                check_ids((message.fs_name,))
                channel.send(local.Done())
                if not self.site.stop:
                    with contextlib.suppress(Busy), self.prepares.turn(uid, 1, 0.0):
                        self.planner.prepare(message.fs_name, channel.descriptors, uid)
            case local.PlansQuery():
                self.counts["questions"] += 1
                self._answer_question(channel, uid, lambda: self.stored.rows(message, uid))
            case local.ViewQuery():
                self.counts["questions"] += 1
                self._answer_question(channel, uid, lambda: self._view(message.fs_name))
            case local.ThenQuery():
                self.counts["questions"] += 1
                self._answer_question(channel, uid, lambda: self._then(message))
            case local.StatusQuery():
                self.counts["questions"] += 1
                self._answer_question(channel, uid, lambda: self._status(uid, message.job))
            case _:
                raise WireError("clientd socket", "a request", type(message).__name__)

    def _plan(self, channel: Channel, message: local.PlanRequest, uid: int) -> None:
        if channel.gone():
            return  # its leader did not wait so long
        if self.site.stop:
            channel.send(local.PlanReply("declined", self.site.why))
            return
        if why := why_not(self.settings.run, who_asks(self.settings.run, message, uid)):
            channel.send(local.PlanReply("never", why))
            return
        channel.limit(CONVERSATION_S)
        begin = time.monotonic()
        named = channel.descriptors[: max(message.histories, 0)]

        def directories(keys: tuple[str, ...]) -> local.DirectoryLayouts:
            channel.limit(EXCHANGE_S)
            channel.max_bytes = local.MAX_LAYOUTS_BYTES
            answer = channel.ask(local.DirectoriesWanted(keys))
            if not isinstance(answer, local.DirectoryLayouts):
                raise WireError("clientd socket", "the layouts of directories", type(answer).__name__)
            return answer

        large = turns_of(named) > 1

        def tell(stage: str) -> None:
            _tell_stage(channel, message, stage)

        reply = self.planner.plan(message, named, uid, directories, self._note, large=large, tell=tell)
        self.planned[reply.status] += 1
        self.plan_seconds.observe(time.monotonic() - begin)
        channel.limit(EXCHANGE_S)
        try:
            channel.send(reply)
        except Unavailable:
            if reply.request_id:  # nobody will ever create these files
                self.notices.ended(uid, reply.request_id)
            raise

    def _progress(self, message: local.StepProgress, uid: int) -> None:
        check_ids(message.request_ids)
        check_ids(list(message.closed))
        if message.ended:
            self.reports.count_not_placed(message.not_placed)
            for id in message.request_ids:
                self.notices.ended(uid, id)
        elif message.request_ids:
            self.notices.alive(uid, message.request_ids, max(0.0, message.alive_s))
        for id, files in message.closed.items():
            self.notices.closed(uid, id, [(i, size) for i, size in files if i >= 0 and 0 <= size < 2**63])

    def _hear_promises(self, channel: Channel, message: local.StepProgress, uid: int) -> None:
        """What mdsd does not know of the step's promises its leader tells."""
        wanted = () if message.ended else self.notices.wanted(uid, message.request_ids)
        for id in wanted:
            channel.limit(EXCHANGE_S)
            channel.max_bytes = local.MAX_PROMISE_BYTES
            answer = channel.ask(local.PromiseWanted(id))
            if not isinstance(answer, PromiseTold) or answer.id != id:
                raise WireError("clientd socket", "what is promised", type(answer).__name__)
            self.notices.promised(msgspec.structs.replace(answer, uid=uid))

    def _part_told(self, message: local.PartTold, uid: int) -> None:
        check_ids((message.part, message.id))
        if len(message.body) > MAX_PART_BYTES:
            raise WireError("clientd socket", f"at most {MAX_PART_BYTES} bytes for a part", len(message.body))
        self.notices.part_told(message.part, message.id, uid, message.body)

    def _answer_question(self, channel: Channel, uid: int, answer: Callable[[], local.LocalMessage]) -> None:
        channel.limit(TURN_S + EXCHANGE_S)
        with self.questions.turn(uid, 1, TURN_S):
            if not channel.gone():
                channel.send(answer())

    def _view(self, fs_name: str) -> ViewReply:
        with self.mdsd.connection() as mdsd:
            return self.mdsd.view(mdsd, fs_name)

    def _then(self, message: local.ThenQuery) -> ThenReply:
        check_ids((message.fs_name,))
        times = (message.from_ago_s, message.to_ago_s)
        if not all(0 <= t < math.inf for t in times) or not all(0 <= i < 1 << 16 for i in message.osts):
            raise WireError("clientd socket", "OST indices, and seconds ago", times)
        return self.mdsd.then(message.fs_name, message.osts[: 1 << 16], *times)

    def _status(self, uid: int, job: str = "") -> local.StatusAnswer:
        """What `tarazu status` shows this user, and `tarazu job show` of one of his jobs."""
        plans = self.stored.of_job(job, uid) if job else []
        status = self.mdsd.status_or_why([id for plan in plans for id in plan.pop("promises")])
        if job:
            status["job"] = {"plans": plans, "promises": status["mdsd"].pop("promises_of", None)}
        if uid and (of_parts := status["mdsd"].get("parts")):
            seen = {name: self._of_user(name, of, uid) for name, of in of_parts.items()}
            status["mdsd"] = {**status["mdsd"], "parts": seen}
        mine = {
            "name": self.name,
            "version": installed_version(),
            "up_s": round(time.time() - self.started_s, 1),
            "database": without_password(self.settings.clientd.database),
            "ready": self.planner.ready.is_set(),
            "waiting": self.plans.waiting,
            "waiting_leaders": len(self.leaders),
            "told_leaders": self.leaders.told,
            "stopped": self.site.why,
            "notices": {"waiting": self.notices.waiting, **self.notices.counts},
            "planned": dict(self.planned),
            "not_placed": dict(self.reports.not_placed),
            "runs_not_placed": dict(self.reports.runs_not_placed),
            **self.counts,
        }
        return local.StatusAnswer({"clientd": mine, **status}, self.planner.ready.is_set())

    def _of_user(self, name: str, of_part: dict[str, Any], uid: int) -> dict[str, Any]:
        if "failed" in of_part:
            return of_part
        return self.parts.call(name, lambda part: part.of_user(of_part, uid)) or {}

    def release(self) -> None:
        self.notices.stop()
        self.planner.close()
        self.stored.close()
        self.leaders.close()
        self.listener.close()
        Path(self.settings.clientd.socket).unlink(missing_ok=True)


def _tell_stage(channel: Channel, request: local.PlanRequest, stage: str) -> None:
    """To a leader that wants to hear it. One that has gone is noticed with the answer."""
    if request.stages:
        with contextlib.suppress(Unavailable):
            channel.send(local.PlanStage(stage))


def who_asks(run: config.RunSettings, message: local.PlanRequest, uid: int) -> Who:
    """The user as this node knows him; the rest as his job says."""
    return Who(uid, user_of(run, uid), message.project, message.partition, message.step.application)


def turns_of(descriptors: Sequence[int]) -> int:
    """How many turns a plan from these histories counts for. What is really read is bounded elsewhere."""
    inodes = [os.fstat(d) for d in descriptors]
    return 1 + sum(f.st_size for f in inodes if stat.S_ISREG(f.st_mode)) // BYTES_A_TURN


def check_ids(ids: Sequence[str]) -> None:
    """Raises WireError for more request ids than a step can have, or for one that is malformed."""
    if len(ids) > local.MAX_IDS or any(not 0 < len(id) <= MAX_ID_CHARACTERS for id in ids):
        raise WireError(
            "clientd socket", f"at most {local.MAX_IDS} ids of {MAX_ID_CHARACTERS} characters", len(ids)
        )


def check_plans(ids: Sequence[int]) -> None:
    """Raises WireError for more plans than a step reports."""
    if len(ids) > local.MAX_IDS:
        raise WireError("clientd socket", f"at most {local.MAX_IDS} plans", len(ids))


def more_descriptors() -> int:
    """Raise the limit of open files as far as we may; the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return min(soft, 65536) if soft != resource.RLIM_INFINITY else 65536


def listen(path: Path) -> socket.socket:
    """The socket that everyone on this node may ask. Raises ConfigError when it cannot be made."""
    try:
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
            path.parent.chmod(0o755)  # whatever the umask: everyone on this node may ask
        deadline = time.monotonic() + DYING_S
        while _answers(path) and time.monotonic() < deadline:
            time.sleep(0.05)  # one that was killed may answer until it is gone
        if _answers(path):
            raise ConfigError(f"clientd.socket {path}", "no other clientd", "one that answers")
        if os.path.lexists(path) and not stat.S_ISSOCK(path.lstat().st_mode):
            raise ConfigError(f"clientd.socket {path}", "a path where a socket can be made", "another file")
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            path.chmod(0o666)
            listener.listen(512)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ConfigError(f"clientd.socket {path}", "a path where a socket can be made", str(error)) from None
    return listener


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True  # somebody listens, with a full backlog
        except OSError:
            return False
    return True


def settings_from(options: argparse.Namespace) -> config.Settings:
    """The configuration with the command line's options on top. Raises ConfigError."""
    check_option(options.database)
    own = {"socket": options.socket, "database": options.database}
    settings = config.override(config.load(options.config), "clientd", **own)
    settings = with_password(settings, options.config)
    return config.override(settings, "keys", directory=options.keys)


def command_line() -> argparse.ArgumentParser:
    """Its options."""
    options = parser(NAME, "Forecast, configure and store the files of job steps; ask mdsd to place them.")
    options.add_argument("--name", default="", help="name of this client (default: host name)")
    options.add_argument("--socket", metavar="PATH", help="Unix socket to answer on")
    options.add_argument("--database", metavar="PATH", help="interaction database")
    return options


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def make(settings: config.Settings, wakeup: Wakeup) -> Clientd:
        os.umask(0o077)
        # A plan makes millions of objects and no cycles: the collector's walks were a quarter of its time.
        gc.set_threshold(200_000, 20, 20)
        # Who has waited for mdsd or the database gets on at once, also while a large plan is stored.
        sys.setswitchinterval(0.0005)
        return Clientd(settings, wakeup, chosen.name)

    return serve(NAME, chosen, lambda: settings_from(chosen), make)


if __name__ == "__main__":
    sys.exit(main())
