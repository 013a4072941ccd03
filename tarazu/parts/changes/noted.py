"""What a daemon has set on its node: noted on disk before it is set, so that it can be taken back after any crash.

daemon       locked by the daemon for as long as it runs: a second one waits
held         written by an `--undo`: nothing is set until `--apply` removes it
lock         held by whoever changes anything, the daemon or a command
drain        held by who counts drained OSTs and drains more

What is noted decides what root sets: where others could change the directory, nothing is read or written
(`tarazu.trusted`). What an ordinary user sets, as on a testbed, is his own: of his the directory alone is looked at.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from tarazu import durable, locks, trusted
from tarazu.errors import StoreError, TarazuError, Unavailable
from tarazu.malformed import MALFORMED

LOCK_S = 30.0

T = TypeVar("T")


class Noted:
    """One node's directory. Only with the lock is anything read or written that matters."""

    daemon = "daemon"
    """Name of the first one in a second one's error."""
    command = "tarazu"
    """The command that holds with `--undo`, and lets go with `--apply`."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._held = f"{self.directory}/held"
        """Looked for each second: a Path would take longer to make than the look."""

    @property
    def why_held(self) -> str:
        return f"held by {self.command} --undo"

    def load(self) -> None:
        """Read the newest content. Raises StoreError."""

    @contextlib.contextmanager
    def locked(self, wait_s: float = LOCK_S, *, load: bool = True) -> Iterator[int]:
        """Alone with this directory, whose newest content is read first (`load`); the lock's descriptor.

        Raises StoreError, Unavailable.
        """
        with self.one_of("lock", wait_s) as descriptor:
            if load:
                self.load()
            yield descriptor

    @contextlib.contextmanager
    def one_of(self, name: str, wait_s: float = LOCK_S) -> Iterator[int]:
        """Alone among those that take the lock of this name. Raises StoreError, Unavailable."""
        descriptor = self._open(name)
        try:
            _lock(descriptor, self.directory / name, wait_s)
            yield descriptor
        finally:
            os.close(descriptor)

    def claim(self) -> int:
        """For the one daemon of this node: a descriptor that locks out others until it is closed.

        Raises StoreError; Unavailable while there is another daemon.
        """
        descriptor = self._open("daemon")
        try:
            locks.need(descriptor, self.directory)
        except BlockingIOError:
            os.close(descriptor)
            raise Unavailable(f"{self.directory}: another {self.daemon}") from None
        except StoreError:
            os.close(descriptor)
            raise
        return descriptor

    @property
    def held(self) -> bool:
        try:
            os.stat(self._held)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def hold(self, on: bool) -> None:
        """Whether nothing is to be set; needs no lock. Who held it first is named. Raises StoreError."""
        if on:
            os.close(self._open("lock"))  # makes the directory
        if on and not os.path.lexists(self._held):
            self.put("held", f"by {self.command} --undo\n")
        elif not on:
            self.remove("held")

    def put(self, name: str, words: str) -> None:
        """A file that counts by being there. On a full disk it is empty: that often works still. Raises StoreError."""
        try:
            self.replace(name, words.encode(errors="replace"))
        except StoreError:
            os.close(self._open(name))

    def replace(self, name: str, data: bytes) -> None:
        """The file has this content, on disk, or what it had before. Raises StoreError."""
        try:
            with self._opened() as here:
                for left in here.glob(f".{name}.*.part"):
                    left.unlink(missing_ok=True)  # by one that was killed: we have the lock
                durable.replace(here / name, data, mode=0o600, sync_name=True)
        except OSError as error:
            raise self._unwritable(error) from None

    def remove(self, name: str) -> None:
        """Needs no space on the disk. Raises StoreError."""
        try:
            with self._opened() as here:
                (here / name).unlink(missing_ok=True)
                durable.sync_directory(here)
        except OSError as error:
            raise self._unwritable(error) from None

    def read(self, name: str, kind: type[T], what: str) -> T | None:
        """The file's content, as JSON of `kind`; None where there is none. Raises StoreError: expected `what`."""
        path = self.directory / name
        try:
            with self._opened() as here, open(trusted.open_file(here / name), "rb") as file:
                if os.fstat(file.fileno()).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    raise OSError(errno.EPERM, "other users can write it")
                return msgspec.json.decode(file.read(), type=kind)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = error.strerror or "a link, or another user's"
            raise StoreError(str(path), "a readable file of this user's", why) from None
        except MALFORMED as error:
            raise StoreError(str(path), what, str(error)) from None

    def _open(self, name: str) -> int:
        try:
            with self._opened(make=True) as here:
                return trusted.open_file(here / name, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise self._unwritable(error) from None

    @contextlib.contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[Path]:
        """The directory, whatever becomes of its name meanwhile. Raises StoreError, OSError."""
        in_home = os.geteuid() != 0
        # A link of root's to it is as good as it.
        path = self.directory if in_home else f"{self.directory}/."
        try:
            directory = trusted.open_directory(path, make=make, in_home=in_home)
        except TarazuError:
            expected = f"a directory that only uid {os.geteuid()} can change, below such directories"
            raise StoreError(str(self.directory), expected, "others can") from None
        try:
            yield trusted.by_descriptor(directory)
        finally:
            os.close(directory)

    def _unwritable(self, error: OSError) -> StoreError:
        reason = error.strerror or str(error)
        return StoreError(str(self.directory), "a directory that can be written", reason)


def _lock(descriptor: int, path: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            locks.need(descriptor, path.parent)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"{path}: expected to get the lock within {wait_s:g} s, found it taken"
                ) from None
            time.sleep(0.02)
