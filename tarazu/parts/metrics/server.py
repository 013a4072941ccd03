"""The HTTP server that gives one text to Prometheus."""

from __future__ import annotations

from tarazu.daemons import http_server
from tarazu.errors import Unavailable
from tarazu.parts.metrics.text import Text

CONVERSATIONS = 4
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


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
