"""What a daemon has set on its node: noted on disk before it is set, so that it can be taken back after any crash.

daemon       locked by the daemon for as long as it runs: a second one waits
held         written by an `--undo`: nothing is set until `--apply` removes it
lock         held by whoever changes anything, the daemon or a command
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from tarazu import durable
from tarazu.errors import StoreError, Unavailable
from tarazu.malformed import MALFORMED

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LOCK_S = 30.0

T = TypeVar("T")


class Noted:
    """One node's directory. Only with the lock is anything read or written that matters."""

    daemon = "daemon"
    """What a second one is told that the first one is."""
    undo = "--undo"
    """The command that holds."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._held = f"{self.directory}/held"
        """Looked for each second: a Path would take longer to make than the look."""

    def load(self) -> None:
        """Read the newest content. Raises StoreError."""

    @contextlib.contextmanager
    def locked(self, wait_s: float = LOCK_S, *, load: bool = True) -> Iterator[int]:
        """Alone with this directory, whose newest content is read first (`load`); the lock's descriptor.

        Raises StoreError, Unavailable.
        """
        descriptor = self._open("lock")
        try:
            _lock(descriptor, self.directory, wait_s)
            if load:
                self.load()
            yield descriptor
        finally:
            os.close(descriptor)

    def claim(self) -> int:
        """For the one daemon of this node: a descriptor that locks out others until it is closed.

        Raises StoreError; Unavailable while there is another daemon.
        """
        descriptor = self._open("daemon")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise Unavailable(f"{self.directory}: another {self.daemon}") from None
        return descriptor

    @property
    def held(self) -> bool:
        try:
            os.stat(self._held)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def hold(self, on: bool) -> None:
        """Whether nothing is to be set; needs no lock. Raises StoreError."""
        if on:
            os.close(self._open("lock"))  # makes the directory
            self.replace("held", f"by {self.undo}\n".encode())
        else:
            self.remove("held")

    def replace(self, name: str, data: bytes) -> None:
        """The file has this content, on disk, or what it had before. Raises StoreError."""
        try:
            self._replace(name, data)
        except OSError as error:
            raise self._unwritable(error) from None

    def remove(self, name: str) -> None:
        """Needs no space on the disk. Raises StoreError."""
        try:
            (self.directory / name).unlink(missing_ok=True)
            durable.sync_directory(self.directory)
        except OSError as error:
            raise self._unwritable(error) from None

    def read(self, name: str, kind: type[T], what: str) -> T | None:
        """The file's content, as JSON of `kind`; None where there is none. Raises StoreError: expected `what`."""
        path = self.directory / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(str(path), "a readable file", error.strerror) from None
        except MALFORMED as error:
            raise StoreError(str(path), what, str(error)) from None

    def _replace(self, name: str, data: bytes) -> None:
        for left in self.directory.glob(f".{name}.*.part"):
            left.unlink(missing_ok=True)  # by one that was killed: we have the lock
        durable.replace(self.directory / name, data, mode=0o600, sync_name=True)

    def _open(self, name: str) -> int:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            return os.open(self.directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> StoreError:
        return StoreError(str(self.directory), "a directory that can be written", error.strerror)


def _lock(descriptor: int, directory: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"{directory}/lock: expected it to be free within {wait_s:g} s, found it held"
                ) from None
            time.sleep(0.02)


def boot() -> str:
    """Which boot of this node it is: what the kernel had been told is gone with the one before."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
