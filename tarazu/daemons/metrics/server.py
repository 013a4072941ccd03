"""The HTTP server that gives one text to Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import Metric

from tarazu.daemons import http_server
from tarazu.errors import Unavailable

CONVERSATIONS = 4
SHARE = 0.05
"""Of a core, for making the text again and again, however often it is asked for."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Collected:
    """prometheus_client's Collector of one daemon."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families()


class Text:
    """The exposition text: of the process, of the interpreter, and the daemon's own families."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        """`families`: called for each text, in a thread of the server; may raise Unavailable."""
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)
        # Not registered: a registry asks at once for what is collected, and no loop turns yet to answer.
        self._own: Any = _Collected(families)
        self._lock = threading.Lock()
        self._text = b""
        self._until = 0.0

    def now(self) -> bytes:
        """Made anew when the last one is old enough."""
        with self._lock:
            begin = time.monotonic()
            if begin >= self._until:
                self._text = generate_latest(self._process) + generate_latest(self._own)
                end = time.monotonic()
                self._until = end + (end - begin) / SHARE
            return self._text


class MetricsServer(http_server.HttpServer):
    """Serves `text` at `/metrics`. Raises OSError for an address that cannot be bound."""

    def __init__(self, at: tuple[str, int], text: Text) -> None:
        self.text = text
        super().__init__(at, _Handler, CONVERSATIONS)


class _Handler(http_server.Handler):
    server: MetricsServer

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/", "/metrics"):
            self.send_error(404)
            return
        try:
            text = self.server.text.now()
        except Unavailable as error:
            self.send_error(503, "no figures now", str(error))
            return
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
