"""Files that a daemon writes beside its loop."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Writer:
    """Writes beside the loop, which no disk must hold up. Of what waits, the newest of each kind is written."""

    def __init__(self) -> None:
        self._troubles: dict[Callable[[bytes], None], str] = {}
        self._waiting: dict[Callable[[bytes], None], Callable[[], bytes]] = {}
        self._changed = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._write, name="tarazu-writer", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Why what was to be written last is not."""
        return "; ".join(dict.fromkeys(list(self._troubles.values())))

    def write(self, how: Callable[[bytes], None], what: Callable[[], bytes]) -> None:
        """Soon `how(what())`; both in the writer's thread."""
        with self._changed:
            self._waiting[how] = what
            self._changed.notify()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting) or self._over)
                waiting, self._waiting = self._waiting, {}
            if not waiting:
                return
            for how, what in waiting.items():
                try:
                    how(what())
                except Exception as error:  # whatever it is, what comes next is written
                    self._troubles[how] = str(error) or type(error).__name__
                else:
                    self._troubles.pop(how, None)

    def close(self) -> None:
        """What waits is written first."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join(10.0)
