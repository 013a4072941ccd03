"""How far a study is and how long it will take, on standard error, also while one case takes long."""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO

EVERY_S = 10.0
"""Between two lines where standard error is no terminal."""


class StudyProgress:
    """Counts finished cases; the time left goes by their weights, not their number."""

    def __init__(self, cases: int, weight: float, stream: TextIO | None = None) -> None:
        self.cases = cases
        self.weight = weight or 1.0
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._done = 0
        self._done_weight = 0.0
        self._start = time.monotonic()
        self._shown = self._start
        self._lock = threading.RLock()
        self._over = threading.Event()

    def __enter__(self) -> StudyProgress:
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _beat(self) -> None:
        every_s = 1.0 if self._terminal else EVERY_S
        while not self._over.wait(every_s):
            with self._lock:
                now = time.monotonic()
                if self._done < self.cases and now - self._shown >= every_s / 2:
                    self._shown = now
                    self._show(self._text(now - self._start), end="")

    def advance(self, weight: float) -> None:
        with self._lock:
            self._done += 1
            self._done_weight += weight
            now = time.monotonic()
            last = self._done == self.cases
            if self._terminal or last or now - self._shown >= EVERY_S:
                self._shown = now
                self._show(self._text(now - self._start), end="\n" if last else "")

    def tell(self, text: str) -> None:
        """A line of its own, whatever stands there."""
        clear = "\r\x1b[K" if self._terminal else ""
        with self._lock:
            print(f"{clear}{text}", file=self._stream, flush=True)

    def _text(self, elapsed_s: float) -> str:
        text = f"[{elapsed_s:6.1f} s] {self._done} of {self.cases} cases"
        left_s = (
            elapsed_s * (self.weight - self._done_weight) / self._done_weight if self._done_weight else 0.0
        )
        return f"{text}, {duration(left_s)} left" if 0 < self._done < self.cases else text

    def _show(self, text: str, end: str) -> None:
        if self._terminal:
            print(f"\r\x1b[K{text}", end=end, file=self._stream, flush=True)
        else:
            print(text, file=self._stream, flush=True)


def duration(seconds: float) -> str:
    """`3725` → `1 h 2 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
