"""What is usual for each OST, on disk: `usual.msgpack` in its directory, written every `WRITE_S` and at the end.

Losing it loses what was learned, nothing else: a file that cannot be used is set aside, and learning begins again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from pathlib import Path

from tarazu import durable
from tarazu.errors import StoreError
from tarazu.stats.usual import MOST_BYTES, Usual

log = logging.getLogger("tarazu.mdsd")

WRITE_S = 600.0


class UsualTimes:
    """`usual` is what is known; `look` writes it when that is due, in a thread: nobody waits for the disk."""

    def __init__(self, directory: str, write_s: float = WRITE_S) -> None:
        """`directory`: mdsd's; nothing is kept where it is empty."""
        self.usual = Usual()
        self._path = Path(directory, "usual.msgpack") if directory else None
        self._write_s = write_s
        self._due = time.monotonic() + write_s
        self._writing: threading.Thread | None = None
        if self._path:
            self._read(self._path)

    def _read(self, path: Path) -> None:
        try:
            # Nobody waits for what is no file.
            with open(path, "rb", opener=lambda at, flags: os.open(at, flags | os.O_NONBLOCK)) as file:
                data = file.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise StoreError(str(path), f"at most {MOST_BYTES} bytes", "more")
            self.usual.load(data, str(path))
        except FileNotFoundError:
            pass
        except OSError as error:
            log.error("%s: %s; what is usual for each OST is learned again", path, error.strerror)
        except StoreError as error:
            log.error("%s; set aside as .unreadable, what is usual for each OST is learned again", error)
            with contextlib.suppress(OSError):
                os.replace(path, f"{path}.unreadable")

    def look(self, now: float) -> None:
        """Write if that is due; `now` on the monotonic clock."""
        if self._path is None or now < self._due or (self._writing and self._writing.is_alive()):
            return
        self._due = now + self._write_s
        self.usual.forget()
        self._writing = threading.Thread(target=self._write, name="tarazu-usual", daemon=True)
        self._writing.start()

    def close(self) -> None:
        """Write what was learned since."""
        if self._writing:
            self._writing.join()
        if self._path and len(self.usual):
            self._write()

    def _write(self) -> None:
        if self._path:
            with contextlib.suppress(OSError):  # what is lost is learned again
                durable.replace(self._path, self.usual.dump(), mode=0o600)
