"""The daemons' log: one line a record, in the form that its reader takes.

For journald each line begins with its priority, `<4>` (sd-daemon(3)), and holds neither time nor program, which the
journal knows. Elsewhere it begins with the program's name. What a peer has sent may stand in a line: nothing of it
ends the line or reaches a terminal as a control character.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping

from tarazu.names import one_line

_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""Python's levels as those of syslog; below all of them: 7, debugging."""


def to_the_journal(environ: Mapping[str, str], descriptor: int = 2) -> bool:
    """Whether what is written to `descriptor` goes straight to journald: systemd.exec(5), $JOURNAL_STREAM."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


class LineFormatter(logging.Formatter):
    """One line for each record, a traceback included."""

    def __init__(self, name: str, *, journal: bool) -> None:
        super().__init__()
        self._name = name
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        text = one_line(super().format(record))
        if not self._journal:
            # What ends the daemon has the form of every error of a tarazu command.
            level = "" if record.levelno >= logging.CRITICAL else f"{record.levelname}: "
            return f"{self._name}: {level}{text}"
        return f"<{next((p for level, p in _PRIORITIES if record.levelno >= level), 7)}>{text}"


def log_to_stderr(name: str, *, verbose: bool) -> None:
    """Send all records to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(name, journal=to_the_journal(os.environ)))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True)
