"""An HTTP server that gives one text to Prometheus: bounded in conversations and in time."""

from __future__ import annotations

import contextlib
import logging
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import Metric

from tarazu.errors import Unavailable

log = logging.getLogger("tarazu.daemons")

CONVERSATIONS = 4
CONVERSATION_S = 15.0
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


class Server(ThreadingHTTPServer):
    """Serves `text` at `/metrics`. Raises OSError for an address that cannot be bound."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, at: tuple[str, int], text: Text) -> None:
        self.text = text
        self._free = threading.Semaphore(CONVERSATIONS)
        family, *_, address = socket.getaddrinfo(*at, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        super().__init__((str(address[0]), int(address[1])), _Handler)

    def server_bind(self) -> None:
        # Not as HTTPServer does, which asks the name service who this is.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread is to be had
            self._free.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        end = threading.Timer(CONVERSATION_S, _shut, (request,))
        end.daemon = True
        end.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a scrape by %s failed", client_address, exc_info=True)


def _shut(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "tarazu"
    sys_version = ""

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

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are no news."""
