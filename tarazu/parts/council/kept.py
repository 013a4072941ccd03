"""What a council has on disk, in tarazu-council below `state.directory`.

knowledge.json   what it has learned, and what is decided; of bounded size
unreadable.json  knowledge that could not be read, set aside
mode             what `tarazu change tune` ordered last: it counts instead of `part.council.mode`
status.json      how the daemon was a few seconds ago
daemon           locked by the daemon for as long as it runs: a second one ends
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from tarazu import durable
from tarazu.errors import StoreError
from tarazu.parts.changes import ordered
from tarazu.parts.council.exchange import Mode

MAX_BYTES = 64 << 20
"""Of what was learned: a larger file is not read."""


class CouncilDirectory:
    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    def knowledge(self) -> tuple[bytes, float] | None:
        """What was written last, and how old it is (s). Raises StoreError."""
        path = self.directory / "knowledge.json"
        try:
            with path.open("rb") as file:
                data, age_s = file.read(MAX_BYTES + 1), time.time() - os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(str(path), "a readable file", error.strerror) from None
        if len(data) > MAX_BYTES:
            raise StoreError(str(path), f"at most {MAX_BYTES} bytes", "more")
        return data, max(0.0, age_s)

    def set_aside(self) -> None:
        """Rename a file of knowledge that cannot be read, so that it is not overwritten."""
        with contextlib.suppress(OSError):
            (self.directory / "knowledge.json").rename(self.directory / "unreadable.json")

    def write_knowledge(self, data: bytes) -> None:
        """On disk when this returns. Raises StoreError."""
        self._replace("knowledge.json", data)

    def ordered(self) -> ordered.Ordered | None:
        """None where nothing was. Raises StoreError for what cannot be read."""
        return ordered.ordered(self.directory / "mode")

    def order(self, mode: Mode, reason: str, otherwise: Mode = "observe") -> Mode:
        """As `ordered.reorder`. Raises StoreError."""
        return ordered.reorder(self.directory / "mode", mode, reason, otherwise)

    def status(self) -> bytes | None:
        with contextlib.suppress(OSError):
            return (self.directory / "status.json").read_bytes()
        return None

    def write_status(self, data: bytes) -> None:
        """Raises StoreError."""
        self._replace("status.json", data)

    def _replace(self, name: str, data: bytes) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            durable.replace(self.directory / name, data)
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be written", error.strerror) from None
