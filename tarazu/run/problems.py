"""What goes wrong in tarazu around a program: named once in the job's line and `tarazu.log`, never to the program."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

P = ParamSpec("P")
MAX_PROBLEMS = 20


class Problems:
    """Of one job step."""

    def __init__(self, log: Path, who: str, over: threading.Event) -> None:
        """`log`: the user's; `who`: begins its lines; `over`: the program has ended."""
        self.noted: list[str] = []
        self._log = log
        self._who = who
        self._over = over

    def guard(self, work: Callable[P, object], *args: P.args, **named: P.kwargs) -> bool:
        """Do what must not raise: a failure is noted, the program goes on; False then."""
        try:
            work(*args, **named)
        except Exception as error:
            # What a thread stumbles over once the step has ended is the end itself.
            if not self._over.is_set() or threading.current_thread() is threading.main_thread():
                self.note(f"{type(error).__name__}: {error}")
            return False
        return True

    def in_background(self, work: Callable[P, object], *args: P.args, **named: P.kwargs) -> threading.Thread:
        """`guard` in a thread. Nobody waits for it: at the end of the step it is left where it stands."""
        thread = threading.Thread(target=self.guard, args=(work, *args), kwargs=named, daemon=True)
        thread.start()
        return thread

    def note(self, problem: str) -> None:
        """Name a problem, once."""
        if problem not in self.noted and len(self.noted) < MAX_PROBLEMS:
            self.noted.append(problem)
            self.log(problem)

    def log(self, text: str) -> None:
        """Write a line into the log."""
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {self._who}: {text}"
        with contextlib.suppress(OSError):
            append_line(self._log, " ".join(line.split()))


def append_line(path: Path, line: str) -> None:
    """Add a line to a log that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(descriptor, "a", encoding="utf-8", errors="surrogateescape") as log:
        log.write(line + "\n")
