"""An HTTP server beside a daemon's loop: bounded in conversations and in time, and no line in the log for each."""

from __future__ import annotations

import contextlib
import logging
import socket
import socketserver
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

log = logging.getLogger("tarazu.daemons")

CONVERSATION_S = 15.0


class Handler(BaseHTTPRequestHandler):
    """What all of them answer alike."""

    server_version = "tarazu"
    sys_version = ""

    def log_message(self, format: str, *args: object) -> None:
        """Requests are no news."""


class HttpServer(ThreadingHTTPServer):
    """`handler` answers in threads. Raises OSError for an address that cannot be bound."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, at: tuple[str, int], handler: type[Handler], conversations: int) -> None:
        """`conversations`: at a time; a further one is closed."""
        self._free = threading.Semaphore(conversations)
        family, *_, address = socket.getaddrinfo(*at, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        super().__init__((str(address[0]), int(address[1])), handler)

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
        log.debug("a conversation with %s failed", client_address, exc_info=True)


def _shut(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
