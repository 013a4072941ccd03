"""Asks for the newest overview again and again in a thread, so that keys are answered while nobody else answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tarazu.errors import TarazuError
from tarazu.wire.overview import Overview


class Watching:
    """`newest` is the last one that came, `problem` why there is no newer one."""

    def __init__(self, ask: Callable[[], Overview], every_s: float, changed: Callable[[], None]) -> None:
        self.newest: Overview | None = None
        self.problem = ""
        self._ask = ask
        self._every_s = every_s
        self._changed = changed
        self._wanted = threading.Event()
        self._paused = False
        self._over = False

    def start(self) -> None:
        threading.Thread(target=self._run, name="tarazu-top", daemon=True).start()

    def pause(self, paused: bool) -> None:
        self._paused = paused
        if not paused:
            self._wanted.set()

    def at_once(self) -> None:
        self._wanted.set()

    def end(self) -> None:
        self._over = True
        self._wanted.set()

    def _run(self) -> None:
        while not self._over:
            self._wanted.clear()
            began = time.monotonic()
            try:
                self.newest, self.problem = self._ask(), ""
            except TarazuError as error:
                self.problem = str(error)
            except Exception as error:  # an answer that is none must not end the asking unseen
                self.problem = f"an answer that is none: {error!r}"
            if self._over:
                return
            self._changed()
            # One that answers slowly is asked less often.
            pause_s = max(self._every_s - (time.monotonic() - began), self._every_s / 10)
            self._wanted.wait(None if self._paused else pause_s)
