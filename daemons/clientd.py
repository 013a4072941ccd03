"""tarazu-clientd: prediction, configuration and the interaction database of a client node.

Answers `tarazu run` and the other commands on a Unix socket (`clientd.socket`), one thread per conversation;
who asks is known from the socket's credentials, and sees only his own rows (root sees all). Follows mdsd
(`mdsd.requests`): allocation requests are resent until answered or the deadline is over. When mdsd is
silent: the forecast is stored without OSTs and the job runs unplaced. A conversation that fails ends alone;
the database is written in transactions, so that a kill at any time leaves the last complete state.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import selectors
import socket
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from tarazu import config
from tarazu.config import without_password
from tarazu.daemons.planner import Planner, read_histories, read_history
from tarazu.daemons.process import Wakeup, parser, run
from tarazu.errors import ConfigError, TarazuError, WireError
from tarazu.wire import local

log = logging.getLogger("tarazu.clientd")

NAME = "tarazu-clientd"
CONVERSATION_S = 90.0
"""A conversation ends after this, whoever is slow; mdsd's answer is waited for less long."""
DYING_S = 2.0
MAX_CONVERSATIONS = 64
MAX_PER_USER = 8
"""Conversations of one user at a time; root has all."""

MOST_NOTED = 1000
"""Problems with histories that are remembered, so that each is logged once."""


class Clientd:
    """All state of the daemon."""

    def __init__(self, settings: config.Settings, wakeup: Wakeup) -> None:
        self.settings = settings
        self.wakeup = wakeup
        self.name = settings.clientd.name or socket.gethostname()
        self.started_s = time.time()
        self.planner = Planner(settings)
        self.counts = {"plans": 0, "reports": 0, "questions": 0, "failed": 0, "turned_away": 0}
        self._talking: Counter[int] = Counter()
        self._noted: set[str] = set()
        self._lock = threading.Lock()
        self.listener = listen(Path(settings.clientd.socket))
        log.info("%s answers on %s", self.name, settings.clientd.socket)

    def loop(self) -> None:
        """Accept conversations until told to stop."""
        threading.Thread(target=self.planner.warm_up, daemon=True).start()
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            selector.register(self.wakeup.fd, selectors.EVENT_READ)
            while not self.wakeup.stopping:
                ready = {key.fileobj for key, _ in selector.select()}
                self.wakeup.drain()
                if self.listener in ready:
                    with contextlib.suppress(OSError):
                        self._start(self.listener.accept()[0])

    def _start(self, connection: socket.socket) -> None:
        connection.settimeout(CONVERSATION_S)
        channel = local.Channel(connection, max_bytes=local.MAX_REQUEST_BYTES, deadline_s=CONVERSATION_S)
        uid = channel.peer_uid()
        with self._lock:
            busy = self._talking.total() >= MAX_CONVERSATIONS or (uid and self._talking[uid] >= MAX_PER_USER)
            if not busy:
                self._talking[uid] += 1
        if busy:
            self.counts["turned_away"] += 1
            channel.close()
            return
        threading.Thread(target=self._converse, args=(channel, uid), daemon=True).start()

    def _converse(self, channel: local.Channel, uid: int) -> None:
        try:
            with channel:
                try:
                    self._answer(channel, channel.receive(), uid)
                except TarazuError as error:
                    self._fail(channel, str(error))
                except Exception as error:
                    log.exception("a conversation failed")
                    self._fail(channel, f"{type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._talking[uid] -= 1

    def _fail(self, channel: local.Channel, reason: str) -> None:
        self.counts["failed"] += 1
        log.warning("%s", reason)
        with contextlib.suppress(TarazuError):
            channel.send(local.Failed(reason))

    def _note(self, problems: list[str]) -> None:
        """Log what is wrong with a user's histories, once: a plan is asked for again and again."""
        for problem in problems:
            with self._lock:
                known = problem in self._noted
                if len(self._noted) >= MOST_NOTED:
                    self._noted.clear()
                self._noted.add(problem)
            if not known:
                log.warning("%s", " ".join(problem.split()))

    def _answer(self, channel: local.Channel, message: local.LocalMessage, uid: int) -> None:
        match message:
            case local.PlanRequest():
                self.counts["plans"] += 1
                named = channel.descriptors[: max(message.histories, 0)]
                history, problems = read_histories(named, self.settings.predict.runs)
                self._note(problems)

                def directories(keys: tuple[str, ...]) -> local.DirectoryLayouts:
                    answer = channel.ask(local.DirectoriesWanted(keys))
                    if not isinstance(answer, local.DirectoryLayouts):
                        raise WireError("clientd socket", "the layouts of directories", type(answer).__name__)
                    return answer

                channel.send(self.planner.plan(message, history, uid, directories, problems))
            case local.StepReport():
                self.counts["reports"] += 1
                if len(channel.descriptors) != 1:
                    raise WireError("clientd socket", "the run with its report", len(channel.descriptors))
                self.planner.ended(message, read_history(channel.descriptors[0]), uid)
                channel.send(local.Done())
            case local.PlansQuery():
                self.counts["questions"] += 1
                channel.send(self.planner.rows(message, uid))
            case local.StatusQuery():
                self.counts["questions"] += 1
                channel.send(local.StatusAnswer(self.status()))
            case _:
                raise WireError("clientd socket", "a request", type(message).__name__)

    def status(self) -> dict[str, object]:
        """What `tarazu status` shows."""
        mine = {
            "name": self.name,
            "up_s": round(time.time() - self.started_s, 1),
            "database": without_password(self.settings.clientd.database),
            "ready": self.planner.ready.is_set(),
            **self.counts,
        }
        return {"clientd": mine, "mdsd": self.planner.mdsd_status()}

    def close(self) -> None:
        self.listener.close()
        Path(self.settings.clientd.socket).unlink(missing_ok=True)


def listen(path: Path) -> socket.socket:
    """The socket that everyone on this node may ask. Raises ConfigError when it cannot be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + DYING_S
        while _answers(path) and time.monotonic() < deadline:
            time.sleep(0.05)  # one that was killed may answer until it is gone
        if _answers(path):
            raise ConfigError(f"clientd.socket {path}", "no other clientd", "one that answers")
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen(128)
    except OSError as error:
        raise ConfigError(f"clientd.socket {path}", "a path where a socket can be made", str(error)) from None
    return listener


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def settings_from(options: argparse.Namespace) -> config.Settings:
    """The configuration with the command line's options on top. Raises ConfigError."""
    own = {"name": options.name, "socket": options.socket, "database": options.database}
    settings = config.override(config.load(options.config), "clientd", **own)
    return config.override(settings, "keys", directory=options.keys)


def main(argv: list[str] | None = None) -> int:
    options = parser(NAME, "Forecast, configure and store the files of job steps; ask mdsd to place them.")
    options.add_argument("--name", help="name of this client (default: host name)")
    options.add_argument("--socket", metavar="PATH", help="Unix socket to answer on")
    options.add_argument("--database", metavar="PATH", help="interaction database")
    chosen = options.parse_args(argv)

    def body() -> int:
        settings = settings_from(chosen)
        os.umask(0o077)
        # A plan makes millions of objects and no cycles: the collector's walks were a quarter of its time.
        gc.set_threshold(200_000, 20, 20)
        with Wakeup() as wakeup:
            clientd = Clientd(settings, wakeup)
            try:
                clientd.loop()
            finally:
                clientd.close()
        return 0

    return run(NAME, chosen, body)


if __name__ == "__main__":
    sys.exit(main())
