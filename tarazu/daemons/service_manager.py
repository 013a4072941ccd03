"""systemd's side of a daemon: sd_notify(3), a datagram on $NOTIFY_SOCKET; and the log as journald takes it.

One line a record. For journald each line begins with its priority, `<4>` (sd-daemon(3)), and holds neither time nor
program, which the journal knows. Elsewhere it begins with the program's name. What a peer has sent may stand in a line:
nothing of it ends the line or reaches a terminal as a control character.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Mapping, MutableMapping

from tarazu.names import one_line

log = logging.getLogger("tarazu.daemons")

_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""Python's levels as those of syslog; below all of them: 7, debugging."""


class ServiceManager:
    """The one that waits for this daemon's word; without one, everything here does nothing.

    The daemon's main loop calls `alive` at least every `every_s`: a loop that hangs does not, and is started again
    (WatchdogSec=). Nothing here waits: a word that cannot be sent is lost, and `ready` says so.
    """

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        """Takes its variables out of `environ`: programs that this daemon starts must not use them."""
        address = environ.pop("NOTIFY_SOCKET", "")
        usecs, pid = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket: socket.socket | None = None
        self.every_s: float | None = None
        """How often `alive` is expected to be called; None: nobody watches."""
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.setblocking(False)
            if usecs.isdecimal() and int(usecs) > 0 and pid in ("", str(os.getpid())):
                # So that no two words are further apart than half the time that there is, one being late.
                self.every_s = int(usecs) / 4e6
        self._status = ""
        self._alive_at = 0.0
        self._extended_at = 0.0

    def ready(self, status: str = "") -> bool:
        """It serves: sockets are bound, what was on disk is read. False: it has to be said again."""
        return self._tell("READY=1", *self._changed(status))

    def reloading(self) -> None:
        """SIGHUP: settings are read again; `ready` says when that is done."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        self._tell("STOPPING=1")

    def status(self, text: str) -> None:
        """What `systemctl status` shows; sent when it has changed."""
        if text != self._status:
            self._tell(*self._changed(text))

    def _changed(self, status: str) -> list[str]:
        self._status = status or self._status
        return [f"STATUS={one_line(status)}"] if status else []

    def alive(self) -> None:
        """The main loop turns."""
        now = time.monotonic()
        if self.every_s is not None and now - self._alive_at >= self.every_s:
            self._alive_at = now
            self._tell("WATCHDOG=1")

    def busy(self, seconds: float = 60.0) -> None:
        """Still at work, not `ready` yet or `stopping`: said again before these seconds are over."""
        now = time.monotonic()
        if now - self._extended_at >= seconds / 4:
            self._extended_at = now
            self._tell(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")

    def longest_wait_s(self, wait_s: float) -> float:
        """`wait_s`, or less where the loop must turn before."""
        return wait_s if self.every_s is None else min(wait_s, self.every_s)

    def _tell(self, *lines: str) -> bool:
        """False where it was lost because systemd has not read yet what was said before."""
        if self._socket is None or not lines:
            return True
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            log.debug("cannot report %s to systemd: %s", lines[0], error)
            return not isinstance(error, BlockingIOError)
        return True

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


def to_the_journal(environ: Mapping[str, str], descriptor: int = 2) -> bool:
    """Whether what is written to `descriptor` goes straight to journald: systemd.exec(5), $JOURNAL_STREAM."""
    try:
        inode = os.fstat(descriptor)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{inode.st_dev}:{inode.st_ino}"


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
