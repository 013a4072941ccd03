"""What goes wrong in tarazu around a program: named once in the job's line and `tarazu.log`, never to the program."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

from tarazu import locks
from tarazu.errors import TarazuError

P = ParamSpec("P")
MAX_PROBLEMS = 20
MOST_LOG_BYTES = 4 << 20
"""Of `jobs.log` and of `tarazu.log`; of each there is one of before beside it at most."""
KEPT_LOG_S = 365 * 86400.0


class Problems:
    """Of one job step."""

    def __init__(self, log: Path, who: str, over: threading.Event) -> None:
        """`log`: the user's; `who`: begins its lines; `over`: the program has ended."""
        self.noted: list[str] = []
        self._log = log
        self._who = who
        self._over = over

    def guard(self, work: Callable[P, object], *args: P.args, **named: P.kwargs) -> bool:
        """Do what must not raise: a failure is noted, the program continues; False then."""
        try:
            work(*args, **named)
        except Exception as error:
            # What a thread stumbles over once the step has ended is the end itself.
            if not self._over.is_set() or threading.current_thread() is threading.main_thread():
                self.note(in_words(error))
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


def in_words(error: Exception) -> str:
    """Ours say all; of others the kind says more than their text."""
    return str(error) if isinstance(error, TarazuError) else f"{type(error).__name__}: {error}"


def append_line(path: Path, line: str) -> None:
    """Add a line to a log that only its owner can read. One of MOST_LOG_BYTES becomes `<name>.1` in place of the one
    before, which also goes when it is older than KEPT_LOG_S. Raises OSError; else the line is in one of the two.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = (line + "\n").encode("utf-8", "surrogateescape")
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(descriptor, "ab", buffering=0) as log:
            if log.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if os.fstat(descriptor).st_nlink:
                _rotate(path, descriptor)
                return
        # Between opening and writing others have filled two of them: this one is nowhere any more.


def before(path: Path) -> Path:
    """The log that this one took the place of."""
    return path.with_name(f"{path.name}.1")


def _rotate(path: Path, descriptor: int) -> None:
    """As far as it is needed; what cannot be done now is done with a later line."""
    with contextlib.suppress(OSError):
        if time.time() - before(path).stat().st_mtime > KEPT_LOG_S:
            before(path).unlink()
    with contextlib.suppress(OSError):
        if os.fstat(descriptor).st_size < MOST_LOG_BYTES:
            return
        try:
            locks.take(descriptor)
        except BlockingIOError:
            return  # another one does it
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            path.rename(before(path))
