"""The site's stop file (`run.stop_file`): while it is there, tarazu leaves every job alone (off-switches.md).

It counts when only root can have put it there: a regular file of root's under one name, writable by nobody else, in a
directory of which the same is true. Its first line is the reason.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import BadInput, StoreError, TarazuError
from tarazu.store.control import REASON_BYTES, replace_file

_OTHERS_MAY_WRITE = 0o022


class SiteStop(NamedTuple):
    """A stop in force."""

    path: str
    reason: str
    """May be empty."""
    since_s: float
    """Unix time."""

    def __str__(self) -> str:
        return f"stopped by {self.path}" + (f": {self.reason}" if self.reason else "")


def site_stop(path: str) -> SiteStop | None:
    """The stop in force; None when there is none, or none that counts or can be reached. May hang where `path` does."""
    if not path:
        return None
    parent = os.path.dirname(path)
    _ask_again(parent)
    try:
        file, above = os.lstat(path), os.lstat(parent)
    except OSError:
        return None
    if not (_is_roots(file, stat.S_IFREG) and file.st_nlink == 1 and _is_roots(above, stat.S_IFDIR)):
        return None
    return SiteStop(path, _first_line(path), file.st_mtime)


def stop_site(path: str, reason: str = "") -> SiteStop:
    """Stop the whole site. Raises StoreError when it cannot be written, BadInput when it would not count."""
    if not path:
        raise BadInput("run.stop_file", "a path that all nodes see", "none: this site has no stop file")
    _make_directory(Path(path).parent)
    replace_file(Path(path), " ".join(reason.split()).encode() + b"\n")
    stop = site_stop(path)
    if stop is None:
        with contextlib.suppress(OSError):
            Path(path).unlink()
        raise BadInput(
            path, "a file of root's in a directory that only root can change", f"uid {os.geteuid()}"
        )
    return stop


def _make_directory(path: Path) -> None:
    """With all above it, and searchable by everybody, whatever root's umask is: users' jobs look there."""
    if path.exists():
        return
    _make_directory(path.parent)
    with contextlib.suppress(OSError):
        path.mkdir()
        path.chmod(0o755)


def resume_site(path: str) -> bool:
    """Remove the stop file; False when there was none. Raises StoreError."""
    try:
        Path(path).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(path, "a file that can be removed", str(error)) from None
    return True


def _is_roots(found: os.stat_result, kind: int) -> bool:
    return stat.S_IFMT(found.st_mode) == kind and found.st_uid == 0 and not found.st_mode & _OTHERS_MAY_WRITE


def _first_line(path: str) -> str:
    """Empty where the reader may not read it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            words = file.read(REASON_BYTES - 1).partition(b"\n")[0].decode(errors="replace").split()
            return " ".join(words)
    return ""


def _ask_again(directory: str) -> None:
    """Where a server has the directory: what this node remembers of it, above all that a name is not there, is old.

    An NFS client believes that for half a minute and longer, unless the directory's attributes are asked for anew. A
    disk of this node (its device has a major number) has no server.
    """
    with contextlib.suppress(OSError):
        if os.major(os.stat(directory).st_dev):
            return
        from tarazu import statx

        statx.statx(directory, statx.FORCE_SYNC)


EVERY_S = 0.5
FIRST_S = 0.5
"""So long is waited for the first look; a file that cannot be reached by then does not stop anything."""


class SiteWatch:
    """Looks at the stop file in a thread of its own, where a hang delays nobody. `stop`: what the last look showed."""

    def __init__(
        self, path: str, changed: Callable[[SiteStop | None], None] | None = None, every_s: float = EVERY_S
    ) -> None:
        """`changed` is called, in the thread, whenever the stop begins or ends; what it cannot do is tried again."""
        self.path = path
        self.stop: SiteStop | None = None
        self.seen: SiteStop | None = None
        """The last one that there was."""
        self.changed = changed
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
        signal.pthread_sigmask(
            signal.SIG_BLOCK, signal.valid_signals()
        )  # a leader takes them in a thread of its own
        while not self._over.is_set():
            self.stop = site_stop(self.path)
            self.seen = self.stop or self.seen
            if self.changed and self.stop != self._told:
                with contextlib.suppress(TarazuError):
                    self.changed(self.stop)
                    self._told = self.stop
            self._looked.set()
            self._over.wait(self._every_s)
