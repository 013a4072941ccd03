"""A daemon's audit log: lines of `name=value`, strings quoted as in JSON, in its own file or the daemon's log."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from tarazu.errors import ConfigError


class AuditFile:
    def __init__(self, path: str, log: logging.Logger) -> None:
        """`path` "" writes to `log`."""
        self.path = Path(path) if path else None
        self._log = log
        self._failed = False

    def check(self, setting: str) -> None:
        """Raises ConfigError for a file that cannot be written; `setting`: its name."""
        if self.path:
            try:
                self.path.open("a").close()
            except OSError as error:
                raise ConfigError(str(self.path), f"a writable file for {setting}", error.strerror) from None

    def line(self, fields: Mapping[str, object]) -> None:
        """With the time before them."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = " ".join(f"{name}={value}" for name, value in {"time": now, **fields}.items())
        if self.path is None:
            self._log.info("%s", line)
            return
        try:
            # Opened for each line, so that the file can be rotated without telling us.
            with self.path.open("a") as file:
                file.write(line + "\n")
            self._failed = False
        except OSError as error:
            if not self._failed:
                self._log.error("%s: audit lines are lost: %s", self.path, error.strerror)
            self._failed = True
