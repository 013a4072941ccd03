"""tarazu-pool: keeps an OST pool of the OSTs that are neither sick, full nor drained, on the MGS's node.

Publishes: nothing. Follows: what mdsd says of each OST, once in `ossd.interval_s`; without its word nothing changes.
Changes the pool only with `pool.mode` apply, by `lctl pool_add` and `pool_remove`, never without a note of what was
there (`tarazu.daemons.pool.keeper`); nothing while it is held (`tarazu change pool --undo`). Of two on one node the
second one waits. When it ends, the pool stays: directories name it.
"""

from __future__ import annotations

import argparse
import logging
import sys
from functools import partial

from tarazu import config
from tarazu.daemons.asking import whole
from tarazu.daemons.pool.keeper import Done, Keeper
from tarazu.daemons.questions import Questions
from tarazu.daemons.service import Service, Wakeup, parser, serve
from tarazu.errors import TarazuError
from tarazu.store.stop import SiteWatch
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.pool")

NAME = "tarazu-pool"
CLAIM_S = 5.0


class PoolService(Service):
    """All state of the daemon."""

    USED = ("keys.", "state.", "mdsd.requests", "standby.", "pool.", "ossd.interval_s", "run.stop_file")

    def __init__(self, settings: config.Settings, wakeup: Wakeup) -> None:
        """Raises BadInput, ConfigError, WireError."""
        super().__init__(settings, wakeup)
        self.options = settings.pool
        self.interval_s = settings.ossd.interval_s
        self.site = SiteWatch(settings.run.stop_file, every_s=2.0)
        self.keeper = Keeper(settings, self.manager.alive, stopped=lambda: self.site.why)
        self.questions = Questions(settings)
        self._said = SaidOnce(log)
        self._rounds = self.every(self._interval_s, self._round)
        self.site.start()
        log.info("pool %s: %s, every %g s", self.options.name, self.options.mode, self.interval_s)

    def _interval_s(self) -> float:
        return CLAIM_S if self.claimed is None else self.interval_s

    def _round(self, now: float) -> None:
        if not self.alone(self.keeper.notes.claim, "changes nothing", self._said):
            return
        try:
            with self.questions.connection() as mdsd:
                seen = whole(partial(self.questions.view, mdsd), self.questions.status)
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

    def take_over(self, settings: config.Settings) -> None:
        self.options = self.keeper.options = settings.pool
        self.interval_s = settings.ossd.interval_s
        self._rounds.at_once()

    def release(self) -> None:
        self.site.end()


def command_line() -> argparse.ArgumentParser:
    """Its options."""
    return parser(
        NAME, "Keep an OST pool of the OSTs that are neither sick, full nor drained; on the MGS's node."
    )


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def read() -> config.Settings:
        return config.override(config.load(chosen.config), "keys", directory=chosen.keys)

    return serve(NAME, chosen, read, PoolService)


if __name__ == "__main__":
    sys.exit(main())
