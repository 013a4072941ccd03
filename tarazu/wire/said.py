"""What is said once, and not so often that it fills the log."""

from __future__ import annotations

import logging
import time

AGAIN_S = 3600.0
"""A message that repeats is logged again after this time."""
REMEMBERED = 1024
LINES = 100
"""In AGAIN_S; whatever more there would have been to say is counted."""


class SaidOnce:
    """Warnings of which each comes once an hour, and all together at most a hundred times."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._since = float("-inf")
        self._said: set[str] = set()
        self._lines = 0
        self.unsaid = 0

    def warning(self, text: str, about: str = "") -> None:
        """`about`: what counts as the same; the text itself, where it is empty."""
        now = time.monotonic()
        if now - self._since > AGAIN_S:
            if self.unsaid:
                self._log.warning("%d further lines of this kind were not written", self.unsaid)
            self._since, self._lines, self.unsaid = now, 0, 0
            self._said.clear()
        about = about or text
        if about in self._said:
            return
        if len(self._said) < REMEMBERED:
            self._said.add(about)
        self._lines += 1
        if self._lines > LINES:
            self.unsaid += 1
            return
        last = "; more such lines are only counted" if self._lines == LINES else ""
        self._log.warning("%s (said once an hour%s)", text, last)
