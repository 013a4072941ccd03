"""The page's HTTP: GET and HEAD of a few addresses, and headers that let a browser load and do nothing else."""

from __future__ import annotations

import logging
import re

from tarazu.daemons import http_server
from tarazu.parts.page.pages import Pages

log = logging.getLogger("tarazu.page")

CONVERSATIONS = 16
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept-Encoding",
}


class PageServer(http_server.HttpServer):
    """Raises OSError for an address that cannot be bound."""

    def __init__(self, at: tuple[str, int], pages: Pages) -> None:
        self.pages = pages
        super().__init__(at, _PageHandler, CONVERSATIONS)
        host = str(self.server_address[0])
        self.names: tuple[str, ...] = ()
        """By which it may be asked; empty: any."""
        if host == "::1" or host.startswith("127."):
            self.names = (*LOOPBACK, host)


class _PageHandler(http_server.Handler):
    server: PageServer

    def do_GET(self) -> None:
        self._answer(whole=True)

    def do_HEAD(self) -> None:
        self._answer(whole=False)

    def _refuse(self) -> None:
        self.send_error(405, "read only")

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def _answer(self, *, whole: bool) -> None:
        host = re.sub(r":\d+$", "", self.headers.get("Host", "").strip().lower())
        if self.server.names and host and host not in self.server.names:
            # A name of somebody else's that leads here: a page from elsewhere would read this one.
            self.send_error(421, "asked by a name that is not this node's own")
            return
        try:
            document = self.server.pages.get(self.path.partition("?")[0])
        except Exception:
            log.exception("%s cannot be shown", self.path[:100].encode(errors="replace"))
            self.send_error(500, "this page does not work: journalctl -u tarazu-page says why")
            return
        if document is None:
            self.send_error(404)
            return
        packs = "gzip" in self.headers.get("Accept-Encoding", "").lower()
        body = document.packed if packs else document.plain
        self.send_response(200)
        self.send_header("Content-Type", document.type)
        self.send_header("Content-Length", str(len(body)))
        if packs:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if whole:
            self.wfile.write(body)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if self.command not in ("GET", "HEAD"):
            self.send_header("Allow", "GET, HEAD")
        super().end_headers()
