"""tarazu-page: a read-only page of the whole system at `part.page.listen`, for people with a browser.

Publishes: nothing; it serves HTTP. Follows: mdsd, through clientd where one runs, else with a client's key; asked every
`INTERVAL_S` while somebody looks at the page, else once a minute, for the imbalance over time. When mdsd is silent
the page says so, and shows what was known last with its age. It changes nothing, and nobody waits for it. SIGTERM and
SIGINT end it, SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import threading
import time
from pathlib import Path

import msgspec

from tarazu import config
from tarazu.config.check import listening
from tarazu.daemons.asking import status_of
from tarazu.daemons.changes import here
from tarazu.daemons.service import Service, Wakeup, claim, parser, serve
from tarazu.errors import ConfigError, TarazuError, Unavailable
from tarazu.parts.page.charts import DAY, PERIODS
from tarazu.parts.page.document import History
from tarazu.parts.page.pages import Pages
from tarazu.parts.page.past import MDSD, SILENT, Event, State, states
from tarazu.parts.page.results import Results
from tarazu.parts.page.ring import Moment, Ring
from tarazu.parts.page.seen import SystemState, amiss, file_systems, work_of
from tarazu.parts.page.server import PageServer
from tarazu.parts.page.settings import NAME, directory_of, options_of
from tarazu.wire.overview import overview
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.page")

INTERVAL_S = 10.0
"""Between two questions to mdsd, while somebody looks; `ossd.interval_s` where that is shorter."""
NOTED_S = 60.0
"""So often the imbalance is noted."""
MOST_OF_TRAIL = 200
"""Lines."""
LOOK_S = 1.0
"""So often it is looked whether an answer has come, should nobody say so."""
LOOKED_S = 60.0
"""Somebody looks who has asked for a page so long ago at most."""


class Page(Service):
    """All state of the daemon."""

    USED = (
        "part.page.",
        "keys.",
        "state.",
        "clientd.socket",
        "mdsd.requests",
        "ossd.interval_s",
        "run.",
    )

    def __init__(self, settings: config.Settings, wakeup: Wakeup, state: str = "") -> None:
        """`state`: its directory, instead. Raises ConfigError, StoreError; Unavailable where there is another one, or
        the address is taken.
        """
        super().__init__(settings, wakeup)
        self.seen = SystemState()
        self.history: History = {}
        self._asked_at = self._noted_at = self._looked_at = float("-inf")
        self._asker: threading.Thread | None = None
        self._said = SaidOnce(log)
        own = options_of(settings)
        at = listening(own.listen)
        if at is None:
            raise ConfigError("part.page.listen", "host:port, or a port (of loopback)", own.listen)
        directory = Path(state or directory_of(settings))
        self.claimed = claim(directory, "another tarazu-page has its files here")
        self.ring = Ring(directory / "imbalance.db")
        self.past = self.ring.past
        self.history = self._read(time.time())
        self.pages = Pages(
            Results(str(directory / "results")), _interval_s(settings), self._looked, kept=self.past
        )
        self.started_s = time.time()
        self._no_history = ""
        try:
            self.server = PageServer(at, self.pages)
        except OSError as error:
            raise Unavailable(f"{own.listen}: {error.strerror or error}") from None
        threading.Thread(target=self.server.serve_forever, name="tarazu-page", daemon=True).start()
        host, port = self.server.server_address[:2]
        self.address = f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}/"
        log.info("the page is at %s", self.address)

    def may_wait_s(self, now: float) -> float:
        return LOOK_S if self._asker else self._next_at(now) - now

    def turn(self, now: float) -> None:
        if self._asker is not None and not self._asker.is_alive():
            self._asker = None
            self._show(now)
        if self._asker is None and now >= self._next_at(now):
            self._asked_at = now
            self._asker = threading.Thread(target=self._ask, args=(self.seen, self.settings), daemon=True)
            self._asker.start()

    def _next_at(self, now: float) -> float:
        """When mdsd is to be asked next."""
        every_s = _interval_s(self.settings)
        if now - self._looked_at > LOOKED_S:
            every_s = max(every_s, NOTED_S)
        return self._asked_at + every_s

    def _looked(self) -> None:
        """Somebody asks for a page; called from the server's threads."""
        idle = time.monotonic() - self._looked_at > LOOKED_S
        self._looked_at = time.monotonic()
        if idle:
            self.wakeup.wake()

    def _ask(self, before: SystemState, settings: config.Settings) -> None:
        """In a thread: mdsd may take long to answer, or not answer at all."""
        at_s = time.time()
        try:
            status = status_of(settings)
            mdsd = status["mdsd"]
            if "unavailable" in mdsd:
                raise Unavailable(str(mdsd["unavailable"]))
            self.seen = SystemState(
                overview(mdsd, at_s),
                work_of(mdsd),
                old_after_s=settings.mdsd.stale_after_s,
            )
        except Exception as error:
            if not isinstance(error, (TarazuError, TypeError, ValueError)):
                log.exception("asking mdsd failed")
            since_s = before.since_s if before.problem else at_s
            self.seen = msgspec.structs.replace(before, problem=str(error), since_s=since_s)
        own = tuple(each for each in here.listed(settings) if not each.is_others)
        try:
            trail = tuple(here.events(settings, MOST_OF_TRAIL))
        except TarazuError:  # it is root's
            trail = ()
        self.seen = msgspec.structs.replace(self.seen, here=own, trail=trail, started_s=self.started_s)
        self.wakeup.wake()

    def _show(self, now: float) -> None:
        """What was answered."""
        at_s = time.time()
        if self.seen.problem:
            self._said.warning(f"mdsd does not answer: {self.seen.problem}", "mdsd")
        try:
            events = self._notice(at_s)
            if not self.seen.problem and now - self._noted_at >= NOTED_S - 1:
                self._noted_at = now
                self._note(at_s)
            self._no_history = ""
        except TarazuError as error:
            events, self._no_history = [], str(error)
            self._said.warning(str(error), "ring")
        self.seen = msgspec.structs.replace(
            self.seen, no_history=self._no_history, watched_since_s=self.past.begun_s
        )
        self.pages.show(self.seen, self.history, events)
        self.manager.status(self.seen.problem or f"the page is at {self.address}")

    def _notice(self, at_s: float) -> list[Event]:
        """What became of OSTs, servers and mdsd; of the last day."""
        seen = self.seen
        if seen.problem:
            silent = State(SILENT, seen.since_s, seen.problem)
            self.past.notice({(MDSD, MDSD): silent}, at_s)
        elif seen.overview is not None:
            runs_s = seen.work.uptime_s if seen.work else 0.0
            self.past.notice(states(seen.overview), at_s, mdsd_runs_s=runs_s)
        return self.past.since(at_s - DAY)

    def _note(self, at_s: float) -> None:
        if self.seen.overview is None:
            return
        moments = {
            of.name: Moment(
                int(at_s),
                of.fill,
                of.fullest,
                of.imbalance.fill,
                of.imbalance.load,
                of.writing_bytes_per_s + of.reading_bytes_per_s,
                of.promised_bytes,
                len(amiss(of.targets)),
            )
            for of in file_systems(self.seen.overview)
        }
        self.ring.add(moments)
        self.past.add(at_s, self.seen.overview.targets)
        self.history = self._read(at_s)

    def _read(self, now_s: float) -> History:
        return {
            fs_name: {
                period: self.ring.read(fs_name, period.span_s, now_s - period.length_s) for period in PERIODS
            }
            for fs_name in self.ring.names()
        }

    def take_over(self, settings: config.Settings) -> None:
        self.pages.every(_interval_s(settings))

    def release(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        with contextlib.suppress(TarazuError):
            self.past.write(time.time())
        self.ring.close()


def _interval_s(settings: config.Settings) -> float:
    return min(INTERVAL_S, settings.ossd.interval_s)


def command_line() -> argparse.ArgumentParser:
    options = parser(NAME, "Serve a read-only page of the whole system, for people with a browser.")
    options.add_argument("--listen", metavar="ADDRESS", help="instead of part.page.listen: 127.0.0.1:5780")
    options.add_argument(
        "--state", metavar="DIR", default="", help="instead of tarazu-page in state.directory"
    )
    return options


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def read() -> config.Settings:
        own = config.override(config.load(chosen.config), "keys", directory=chosen.keys)
        return config.override(own, "part.page", listen=chosen.listen)

    return serve(NAME, chosen, read, lambda settings, wakeup: Page(settings, wakeup, chosen.state))


if __name__ == "__main__":
    sys.exit(main())
