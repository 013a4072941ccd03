"""How Prometheus gets the figures of a daemon: an HTTP server beside its loop, and questions between the two.

The loop owns the state. A thread of the server that makes the text asks the loop for a part (`Ask`) and gets it
between two turns of the loop, one part a turn: a scrape holds the daemon up no longer than its largest part.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from tarazu.config import listening
from tarazu.daemons.service import Service
from tarazu.errors import Unavailable
from tarazu.figures import Family
from tarazu.part import InDaemon

if TYPE_CHECKING:
    from tarazu.parts.metrics.server import MetricsServer

log = logging.getLogger("tarazu.daemons")

T = TypeVar("T")

ANSWER_S = 8.0
"""The loop's, to one question; Prometheus itself waits 10 s by default."""


class Ask:
    """Questions of other threads to the main loop."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` ends the loop's wait."""
        self._wake = wake
        self._open: deque[tuple[Callable[[], Any], Future[Any]]] = deque()

    def __call__(self, question: Callable[[], T]) -> T:
        """What `question` gives when the loop calls it. Raises Unavailable when it does not come to that."""
        answer: Future[T] = Future()
        self._open.append((question, answer))
        self._wake()
        try:
            return answer.result(ANSWER_S)
        except TimeoutError:
            answer.cancel()
            raise Unavailable(f"the main loop did not come by within {ANSWER_S:g} s") from None

    def answer_one(self) -> None:
        """Called by the main loop once a turn. What a question raises is the asker's."""
        while self._open:
            question, answer = self._open.popleft()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(question())
            except Exception as error:
                answer.set_exception(error)
            if self._open:
                self._wake()
            return


class Exporter(InDaemon):
    """A daemon's metrics at an address. A problem is a line in the log, and the daemon continues."""

    def __init__(
        self, address: str, wake: Callable[[], None], families: Callable[[Ask], Iterable[Family]]
    ) -> None:
        """`families`: called for each text, in a thread that is not the loop's."""
        self._ask = Ask(wake)
        self._server: MetricsServer | None = None
        if (at := listening(address)) is None:
            return
        try:
            from tarazu.parts.metrics.server import MetricsServer
            from tarazu.parts.metrics.text import Text

            self._server = MetricsServer(at, Text(lambda: families(self._ask)))
        except ImportError:
            log.error("no metrics at %s: prometheus_client is not installed (tarazu[metrics])", address)
            return
        except OSError as error:
            log.error("no metrics at %s: %s", address, error.strerror or error)
            return
        threading.Thread(target=self._server.serve_forever, name="tarazu-metrics", daemon=True).start()
        log.info("metrics at http://%s:%d/metrics", *self._server.server_address[:2])

    def turn(self) -> None:
        self._ask.answer_one()

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


def exporter_of(daemon: Service, address: str, core: str) -> Exporter:
    """`core`: the daemon's name where it is one of the core's, whose figures are told by a module of ours."""
    if not core:
        return Exporter(address, daemon.wakeup.wake, lambda ask: ask(lambda: list(daemon.figures())))
    module = importlib.import_module(f"tarazu.parts.metrics.{core}")
    return Exporter(address, daemon.wakeup.wake, lambda ask: module.families(daemon, ask))
