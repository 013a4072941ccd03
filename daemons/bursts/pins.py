"""What was asked of Slurm for jobs that have not started, as noted on disk before it was asked.

pins.json in `bursts.directory`. A note stands until its job runs or is gone, or until it is taken back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from tarazu import durable
from tarazu.errors import StoreError

MOST = 1000
"""Notes; more is asked for nobody until some are gone."""


class Pin(msgspec.Struct, frozen=True):
    at_s: float
    """Unix time."""
    user: str
    name: str
    nodes: str
    """Those asked for, folded; empty: it was a preference."""
    prefer: str = ""
    """Features preferred, of a job that waits."""
    job: str = ""
    """Its id, once it is known."""


class _File(msgspec.Struct, frozen=True):
    v: int
    pins: tuple[Pin, ...]


VERSION = 1


class Pins:
    """Several threads may use it; what one has added or dropped is on disk when it returns."""

    def __init__(self, directory: str | Path) -> None:
        """Raises StoreError for notes that cannot be read: whoever pins anew would forget them."""
        self.path = Path(directory) / "pins.json"
        self._lock = threading.Lock()
        self._pins = self._read()

    def _read(self) -> tuple[Pin, ...]:
        try:
            found = msgspec.json.decode(self.path.read_bytes(), type=_File)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StoreError(str(self.path), "a readable file", error.strerror) from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StoreError(str(self.path), "notes of nodes asked for", str(error)) from None
        if found.v != VERSION:
            raise StoreError(str(self.path), f"version {VERSION}", found.v)
        return found.pins

    @property
    def all(self) -> tuple[Pin, ...]:
        return self._pins

    def add(self, pin: Pin) -> bool:
        """False: there are too many. Raises StoreError: then it is not noted."""
        with self._lock:
            if len(self._pins) >= MOST:
                return False
            self._keep((*self._pins, pin))
            return True

    def drop(self, done: Iterable[Pin]) -> None:
        """Raises StoreError: then they are still there."""
        gone = set(done)
        self._change(lambda pins: tuple(pin for pin in pins if pin not in gone))

    def replace(self, old: Pin, new: Pin) -> None:
        """Raises StoreError."""
        self._change(lambda pins: tuple(new if pin == old else pin for pin in pins))

    def _change(self, how: Callable[[tuple[Pin, ...]], tuple[Pin, ...]]) -> None:
        with self._lock:
            changed = how(self._pins)
            if changed != self._pins:
                self._keep(changed)

    def _keep(self, pins: tuple[Pin, ...]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            durable.replace(
                self.path,
                msgspec.json.encode(_File(VERSION, pins)) + b"\n",
            )
        except OSError as error:
            raise StoreError(str(self.path), "a file that can be written", error.strerror) from None
        self._pins = pins
