"""tarazu-pool: keeps an OST pool of the OSTs that are neither sick, full nor drained, on the MGS's node.

Publishes: nothing. Follows: what mdsd says of each OST, once in `pool.interval_s`; without its word nothing changes.
Changes the pool only with `pool.mode` apply, by `lctl pool_add` and `pool_remove`, never without a note of what was
there (`tarazu.daemons.pool.keeper`); nothing while it is held (`tarazu pool --undo`). Of two on one node the second one
waits. When it ends, the pool stays: directories name it.
"""

from __future__ import annotations

import argparse
import logging
import os
import select
import sys
import time

from tarazu import config
from tarazu.daemons.pool.keeper import Done, Keeper
from tarazu.daemons.process import Reread, Wakeup, parser, serve
from tarazu.daemons.questions import Questions
from tarazu.daemons.service_manager import ServiceManager
from tarazu.errors import TarazuError, Unavailable
from tarazu.store.stop_watch import SiteWatch
from tarazu.wire.overview import Overview, overview
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.pool")

NAME = "tarazu-pool"
USED = ("keys.", "mdsd.requests", "standby.", "pool.", "run.stop_file")
CLAIM_S = 5.0


class Service:
    """All state of the daemon."""

    def __init__(self, settings: config.Settings, wakeup: Wakeup, reread: Reread | None = None) -> None:
        """Raises BadInput, ConfigError, WireError."""
        self.options = settings.pool
        self.wakeup = wakeup
        self.reread = reread
        self.manager = ServiceManager()
        self.site = SiteWatch(settings.run.stop_file, every_s=2.0)
        self.keeper = Keeper(settings, self.manager.alive, stopped=lambda: self.site.why)
        self.keeper.audit.check("pool.audit_log")
        self.questions = Questions(settings)
        self._claim: int | None = None
        self._said = SaidOnce(log)
        self.site.start()
        log.info("pool %s: %s, every %g s", self.options.name, self.options.mode, self.options.interval_s)

    def loop(self) -> None:
        """Until told to stop."""
        due = time.monotonic()
        self.manager.ready()
        while not self.wakeup.stopping:
            now = time.monotonic()
            if now >= due:
                due = now + (self.options.interval_s if self._alone() else CLAIM_S)
                if self._claim is not None:
                    self._round()
            wait_s = self.manager.longest_wait_s(max(0.0, due - time.monotonic()))
            if select.select([self.wakeup.fd], [], [], wait_s)[0]:
                self.wakeup.drain()
            self.manager.alive()
            if self.wakeup.reload and self.reread:
                self.wakeup.reload = False
                self.reread(self.manager, self._take_over)
                due = time.monotonic()
        self.manager.stopping()

    def _alone(self) -> bool:
        if self._claim is None:
            try:
                self._claim = self.keeper.notes.claim()
            except TarazuError as error:
                self._said.warning(f"{error}: this one changes nothing, and looks again", "claim")
                self.manager.status("changes nothing: its state cannot be had")
                return False
        return True

    def _round(self) -> None:
        try:
            seen = self._ask()
            done = self.keeper.apply(seen) if self.options.mode == "apply" else self.keeper.look(seen)
        except TarazuError as error:
            self._said.warning(f"nothing is changed: {error}", str(error)[:200])
            self.manager.status("nothing is changed: see the log")
            return
        for each in done:
            self._say(each)
        self.manager.status(
            f"{self.options.mode}; " + "; ".join(f"{d.pool}: {len(d.members)} OSTs" for d in done)
        )

    def _ask(self) -> Overview:
        found = self.questions.everyone()
        if why := found["mdsd"].get("unavailable"):
            raise Unavailable(f"mdsd: {why}")
        return overview(found["mdsd"])

    def _say(self, done: Done) -> None:
        if done.failed:
            self._said.warning(f"{done.pool}: {done.failed}", f"{done.pool} {done.failed}"[:200])
        elif done.round.nothing:
            self._said.warning(
                f"{done.pool}: nothing is changed: {done.round.nothing}",
                f"{done.pool} {done.round.nothing}"[:200],
            )
        elif self.options.mode == "advise" and done.commands:
            text = "; ".join(done.commands)
            self._said.warning(f"{done.pool}: with apply: {text}", f"{done.pool} {text}"[:200])

    def _take_over(self, settings: config.Settings) -> None:
        self.options = self.keeper.options = settings.pool

    def close(self) -> None:
        self.site.end()
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None
        self.manager.close()


def command_line() -> argparse.ArgumentParser:
    """Its options."""
    return parser(
        NAME, "Keep an OST pool of the OSTs that are neither sick, full nor drained; on the MGS's node."
    )


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def read() -> config.Settings:
        return config.override(config.load(chosen.config), "keys", directory=chosen.keys)

    return serve(NAME, chosen, read, Service, USED)


if __name__ == "__main__":
    sys.exit(main())
