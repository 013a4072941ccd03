"""tarazu-page: a read-only page of the whole system at `part.page.listen`, for people with a browser.

Publishes: nothing; it serves HTTP. Follows: mdsd, through clientd where one runs, else with a client's key; asked once
a minute, for the history, and every `INTERVAL_S` while somebody looks at the page. When mdsd is silent the page says
so, and shows what was known last with its age. It changes nothing, and nobody waits for it. SIGTERM and SIGINT end it,
SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import argparse
import logging
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tarazu import config
from tarazu.config.check import listening
from tarazu.daemons.asking import status_of
from tarazu.daemons.service import Service, Wakeup, claim, parser, serve
from tarazu.errors import TarazuError, Unavailable
from tarazu.parts.changes import here
from tarazu.parts.page.charts import charts
from tarazu.parts.page.history import History
from tarazu.parts.page.pages import Pages
from tarazu.parts.page.results import Results
from tarazu.parts.page.seen import SystemState
from tarazu.parts.page.server import PageServer
from tarazu.parts.page.settings import NAME, directory_of, options_of
from tarazu.wire.overview import Target, overview
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.page")

INTERVAL_S = 10.0
"""Between two questions to mdsd while somebody looks; a browser asks for the page so often."""
NOTED_S = 60.0
"""So often mdsd is asked at least, and the history noted."""


class Page(Service):
    """All state of the daemon."""

    USED = ("part.page.", "keys.", "state.", "clientd.socket", "mdsd.requests", "mdsd.stale_after_s", "run.")

    def __init__(self, settings: config.Settings, wakeup: Wakeup) -> None:
        """Raises ConfigError, StoreError; Unavailable where there is another one, or the address is taken."""
        super().__init__(settings, wakeup)
        self.seen = SystemState()
        self._asked_at = self._noted_at = float("-inf")
        self._wanted, self._over = threading.Event(), False
        self._said = SaidOnce(log)
        listen = options_of(settings).listen
        at = listening(listen)
        assert at is not None, "its section has checked it"
        directory = Path(directory_of(settings))
        self.claimed = claim(directory, "another tarazu-page has its files here")
        self.history = History(directory / "history.db")
        results = Results(str(directory / "results"))
        self.pages = Pages(results, INTERVAL_S, self._looked, history=self.history)
        try:
            self.server = PageServer(at, self.pages)
        except OSError as error:
            raise Unavailable(f"{listen}: {error.strerror or error}") from None
        for body in (self.server.serve_forever, self._follow):
            threading.Thread(target=body, name=NAME, daemon=True).start()
        host, port = self.server.server_address[:2]
        self.address = f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}/"
        log.info("the page is at %s", self.address)

    def _looked(self) -> None:
        """Somebody asks for a page; called from the server's threads."""
        if time.monotonic() - self._asked_at >= INTERVAL_S / 2:
            self._wanted.set()

    def _follow(self) -> None:
        """In a thread: mdsd may take long to answer, or not answer at all."""
        while not self._over:
            self._wanted.clear()
            self._asked_at = time.monotonic()
            try:
                self.seen = self._ask(self.seen, self.settings)
                if not self._over:
                    self._show(self._asked_at)
            except Exception:
                log.exception("what mdsd says cannot be shown")
            self._wanted.wait(NOTED_S)

    def _ask(self, before: SystemState, settings: config.Settings) -> SystemState:
        at_s = time.time()
        try:
            mdsd = status_of(settings)["mdsd"]
            if "unavailable" in mdsd:
                raise Unavailable(str(mdsd["unavailable"]))
            work = {key: mdsd[key] for key in ("policy", "uptime_s", "requests") if key in mdsd}
            old_s = settings.mdsd.stale_after_s
            seen = SystemState(overview(mdsd, at_s), work, old_after_s=old_s, no_history=before.no_history)
        except Exception as error:
            if not isinstance(error, (TarazuError, TypeError, ValueError)):
                log.exception("asking mdsd failed")
            since_s = before.since_s if before.problem else at_s
            seen = msgspec.structs.replace(before, problem=str(error), since_s=since_s)
        own = tuple(each for each in here.listed(settings) if not each.is_others)
        return msgspec.structs.replace(seen, here=own)

    def _show(self, now: float) -> None:
        """What was answered."""
        seen, no_history = self.seen, self.seen.no_history
        if seen.problem:
            self._said.warning(f"mdsd does not answer: {seen.problem}", "mdsd")
        elif seen.overview and now - self._noted_at >= NOTED_S - 1:
            self._noted_at = now
            try:
                self._note(seen.overview.taken_s, seen.overview.targets)
                no_history = ""
            except TarazuError as error:
                no_history = str(error)
                self._said.warning(no_history, "history")
        self.seen = msgspec.structs.replace(seen, no_history=no_history)
        self.pages.show(self.seen)
        self.manager.status(seen.problem or f"the page is at {self.address}")

    def _note(self, at_s: float, targets: Sequence[Target]) -> None:
        """Raises StoreError."""
        self.history.add(at_s, targets)
        # Of thousands of OSTs that takes half a second.
        names = {t.fs_name for t in targets}
        self.pages.charts = {name: charts(self.history, name, None, at_s) for name in names}

    def release(self) -> None:
        self._over = True
        self._wanted.set()
        self.server.shutdown()
        self.server.server_close()
        self.history.close()


def command_line() -> argparse.ArgumentParser:
    return parser(NAME, "Serve a read-only page of the whole system, for people with a browser.")


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def read() -> config.Settings:
        return config.override(config.load(chosen.config), "keys", directory=chosen.keys)

    return serve(NAME, chosen, read, Page)


if __name__ == "__main__":
    sys.exit(main())
