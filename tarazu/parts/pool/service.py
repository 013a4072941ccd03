"""tarazu-pool: keeps an OST pool of the OSTs that are neither sick, full nor drained, on the MGS's node.

Publishes: nothing. Follows: what mdsd says of each OST, once in `ossd.interval_s`; without its word nothing changes,
but when the site is stopped. Changes the pool only with `part.pool.mode` apply, or as people approved, by the agent of
pools (`tarazu.parts.changes`); nothing while it is held (`tarazu change pool --undo`). Of two on one node the second
one waits. When it ends, the pool stays: directories name it.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from functools import partial

from tarazu import config
from tarazu.daemons.asking import Whole, whole
from tarazu.daemons.questions import Questions
from tarazu.daemons.service import Service, Wakeup, parser, serve
from tarazu.errors import TarazuError
from tarazu.parts.pool.agent import agent_of
from tarazu.parts.pool.planner import Look, Planner
from tarazu.parts.pool.planning import measures, trouble
from tarazu.parts.pool.settings import NAME, Pool
from tarazu.store.stop import SiteWatch
from tarazu.units import counted
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.pool")

CLAIM_S = 5.0
STOP_S = 0.5
"""So often it is looked whether the site is stopped."""


class PoolService(Service):
    """All state of the daemon."""

    USED = (
        "keys.", "state.", "mdsd.requests", "part.pool.", "changes.", "ossd.interval_s", "run.stop_file"
    )  # fmt: skip

    def __init__(self, settings: config.Settings, wakeup: Wakeup) -> None:
        """Raises BadInput, ConfigError, WireError."""
        super().__init__(settings, wakeup)
        self.options = settings.part.of("pool", Pool)
        self.interval_s = settings.ossd.interval_s
        self.site = SiteWatch(settings.run.stop_file, every_s=STOP_S)
        self.seen = Whole(())
        """As mdsd said last."""
        self.agent = agent_of(
            settings, NAME, turn=self.manager.alive, stopped=self._stopped, trouble=self._trouble
        )
        self.planner = Planner(settings, self.agent)
        self.questions = Questions(settings)
        self._said = SaidOnce(log)
        self._rounds = self.every(self._interval_s, self._round)
        self._was_stopped = ""
        self.every(lambda: STOP_S, self._look_at_stop)
        self.site.start()
        log.info("pool %s: %s, every %g s", self.options.name, self.options.mode, self.interval_s)

    def _interval_s(self) -> float:
        return CLAIM_S if self.claimed is None else self.interval_s

    def _stopped(self) -> str:
        return self.site.why or self.seen.stopped

    def _trouble(self) -> str:
        now_s = time.time()
        return next(filter(None, (trouble(view.osts, now_s) for view in self.seen.views)), "")

    def _look_at_stop(self, now: float) -> None:
        if self.site.why != self._was_stopped:
            self._was_stopped = self.site.why
            self._rounds.at_once()

    def _round(self, now: float) -> None:
        if not self.alone(self.agent.store.claim, "changes nothing", self._said):
            return
        looks: list[Look] = []
        try:
            try:
                with self.questions.connection() as mdsd:
                    self.seen = whole(partial(self.questions.view, mdsd))
            except TarazuError:
                if self.site.why:  # all the same it rests
                    self.planner.follow((), self.options.mode)
                raise
            if not self.agent.engine.stopped:
                looks = self.planner.look(self.seen, guess=self.options.mode != "apply")
            done = self.planner.follow(looks, self.options.mode)
        except TarazuError as error:
            self._said.warning(f"nothing is changed: {error}", str(error)[:200])
            self.manager.status("nothing is changed: see the log")
            return
        for look in looks:
            self._say(look)
        for failure in done.failed:
            self._said.warning(f"{failure.key[1]}: {failure.why}", f"{failure}"[:200])
        self.manager.status(
            f"{self.options.mode}; "
            + "; ".join(f"{each.pool}: {counted(len(each.members), 'OST')}" for each in looks)
        )

    def _say(self, look: Look) -> None:
        if look.round.nothing:
            text = f"{look.pool}: nothing is changed: {look.round.nothing}"
            self._said.warning(text, text[:200])
        elif self.options.mode == "advise" and look.commands:
            text = f"{look.pool}: with apply: {'; '.join(look.commands)}"
            self._said.warning(text, text[:200])
        if look.exists and not look.failed:
            view = next(view for view in self.seen.views if look.pool.startswith(f"{view.fs_name}."))
            candidates = len(look.change.wanted) - 1 if look.change else len(look.members)
            # Of the others a day in which more or fewer OSTs are amiss says nothing of a change.
            time_ = measures(view.osts, look.members, candidates)["time"]
            self.agent.saw("pool", {"time": time_}, look.pool)

    def take_over(self, settings: config.Settings) -> None:
        self.options = self.planner.options = settings.part.of("pool", Pool)
        self.agent.take_over(settings)
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
