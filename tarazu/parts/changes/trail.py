"""The one audit file of changes: each agent of this node adds its lines; `tarazu change log` reads them."""

from __future__ import annotations

import errno
import logging
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tarazu.malformed import MALFORMED
from tarazu.parts.changes.model.trail import Event, line_of
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.changes")
NAME = "trail.jsonl"
AMISS = ("failed", "refused", "left", "worse", "cannot mend")
"""What somebody should see in a log."""


class Trail:
    """A line of the file at a time, and the same in words in the daemon's log; what cannot be written is said once."""

    def __init__(self, directory: str | Path, agent: str) -> None:
        """`agent`: who it is, in each line."""
        self.path = Path(directory) / NAME
        self.agent = agent
        self._said = SaidOnce(log)
        self._cut = False
        """The last line was: the next one begins another."""

    def add(self, event: Event) -> None:
        log.log(logging.WARNING if event.event in AMISS else logging.INFO, "%s", line_of(event))
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Opened for each line, so that the file can be rotated without telling us.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.path, flags, 0o600)
            try:
                line = b"\n" * self._cut + event.encoded()
                written = os.write(descriptor, line)
                self._cut = written < len(line)
                if self._cut:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:  # also a name that is no UTF-8
            self._said.warning(f"{self.path}: lines of the trail were lost: {error}", "trail")


def read(path: Path, most: int | None) -> Iterator[Event]:
    """The last `most` lines that can be read (None: all), oldest first; none where there is no file. Raises OSError."""
    try:
        with open(path, "rb") as file:
            lines = deque(file, maxlen=most)
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield msgspec.json.decode(line, type=Event)
        except MALFORMED:
            continue  # cut off by a full disk, or of a later version
