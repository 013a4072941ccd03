"""Looks at the site's stop file, mostly twice a second, in a thread of its own: where that hangs, nobody else waits."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from tarazu.errors import TarazuError
from tarazu.store.stop import SiteStop, site_stop

EVERY_S = 0.5
FIRST_S = 0.5
"""So long is waited for the first look; a file that cannot be reached by then does not stop anything."""


class SiteWatch:
    """`stop` is what the last look showed."""

    def __init__(
        self, path: str, changed: Callable[[SiteStop | None], None] | None = None, every_s: float = EVERY_S
    ) -> None:
        """`changed` is called, in the thread, whenever the stop begins or ends; what it cannot do is tried again."""
        self.path = path
        self.stop: SiteStop | None = None
        self.seen: SiteStop | None = None
        """The last one that there was."""
        self._changed = changed
        self._every_s = every_s
        self._told: SiteStop | None = None
        self._over = threading.Event()
        self._looked = threading.Event()

    @property
    def why(self) -> str:
        """Empty while nothing is stopped."""
        return str(self.stop) if self.stop else ""

    def start(self) -> None:
        """Wait for the first look, `FIRST_S` at most."""
        if self.path:
            threading.Thread(target=self._keep_looking, daemon=True).start()
            self._looked.wait(FIRST_S)

    def end(self) -> None:
        self._over.set()

    def _keep_looking(self) -> None:
        while not self._over.is_set():
            self.stop = site_stop(self.path)
            self.seen = self.stop or self.seen
            if self._changed and self.stop != self._told:
                with contextlib.suppress(TarazuError):
                    self._changed(self.stop)
                    self._told = self.stop
            self._looked.set()
            self._over.wait(self._every_s)
