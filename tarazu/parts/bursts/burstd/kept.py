"""What tarazu-burstd has on disk, in tarazu-burstd below `state.directory`.

traffic/      a file an hour, and the parts of this one (`tarazu.parts.bursts.traffic.days`)
jobs.db       jobs, and what ended ones moved; applications' history
status.json   how the daemon was a few seconds ago
daemon        locked by the daemon for as long as it runs: a second one ends
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec

from tarazu import durable
from tarazu.errors import StoreError
from tarazu.malformed import MALFORMED


class BurstsDirectory:
    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    @property
    def traffic(self) -> Path:
        return self.directory / "traffic"

    @property
    def jobs(self) -> Path:
        return self.directory / "jobs.db"

    def make(self) -> None:
        """Raises StoreError."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be written", error.strerror) from None

    def status(self) -> bytes | None:
        with contextlib.suppress(OSError):
            return (self.directory / "status.json").read_bytes()
        return None

    def told(self) -> dict[str, Any]:
        """The status that was written last; empty: there is none, or it may not be read."""
        data = self.status()
        if data is not None:
            with contextlib.suppress(*MALFORMED):
                return msgspec.json.decode(data, type=dict[str, Any])
        return {}

    def write_status(self, data: bytes) -> None:
        """Raises StoreError."""
        try:
            durable.replace(self.directory / "status.json", data)
        except OSError as error:
            raise StoreError(str(self.directory), "a directory that can be written", error.strerror) from None
