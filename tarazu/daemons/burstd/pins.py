"""What was asked of Slurm for jobs, as noted on disk before it was asked.

pins.jsonl in its directory: a line with the version, then a note a line. One is added at the end, while somebody
waits; what goes is left out when the file is written anew. A note stands until its job is gone, or it is taken back.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from tarazu import durable
from tarazu.errors import StoreError
from tarazu.malformed import MALFORMED

MOST = 1000
"""Notes; more is asked for nobody until some are gone. Nobody gets more than half of those that are left."""
VERSION = 1
_HEAD = b'{"tarazu":"pins","v":%d}\n' % VERSION


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
    started: bool = False
    """It was seen running: what comes after that is another turn of it."""


class Pins:
    """Several threads may use it; what one has added or dropped is on disk when it returns."""

    def __init__(self, directory: str | Path) -> None:
        """Raises StoreError for notes that cannot be read: whoever asks anew would forget them."""
        self.path = Path(directory) / "pins.jsonl"
        self._lock = threading.Lock()
        self._pins, self._whole = self._read()

    def _read(self) -> tuple[tuple[Pin, ...], bool]:
        """The notes, and whether another may be added at the file's end."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return (), False
        except OSError as error:
            raise StoreError(str(self.path), "a readable file", error.strerror) from None
        if not data.startswith(_HEAD):
            raise StoreError(
                str(self.path), f"notes of version {VERSION}", data[:40].decode(errors="replace")
            )
        # What a crash left of a last line was not asked for yet.
        lines, end = data[len(_HEAD) :].split(b"\n")[:-1], data.endswith(b"\n")
        try:
            return tuple(msgspec.json.decode(line, type=Pin) for line in lines), end
        except MALFORMED as error:
            raise StoreError(str(self.path), "notes of nodes asked for", str(error)) from None

    @property
    def all(self) -> tuple[Pin, ...]:
        return self._pins

    def add(self, pin: Pin) -> bool:
        """False: there are too many, or too many of this user. Raises StoreError: then nothing may be asked for."""
        with self._lock:
            if sum(each.user == pin.user for each in self._pins) >= MOST - len(self._pins):
                return False
            if self._whole:
                self._append(pin)
            else:
                self._rewrite((*self._pins, pin))
            return True

    def drop(self, done: Iterable[Pin]) -> None:
        """Raises StoreError: then they are still there."""
        gone = set(done)
        if gone:
            self._change(lambda pins: tuple(pin for pin in pins if pin not in gone))

    def replace(self, old: Pin, new: Pin) -> None:
        """Raises StoreError."""
        self._change(lambda pins: tuple(new if pin == old else pin for pin in pins))

    def _change(self, how: Callable[[tuple[Pin, ...]], tuple[Pin, ...]]) -> None:
        with self._lock:
            changed = how(self._pins)
            if changed != self._pins:
                self._rewrite(changed)

    def _append(self, pin: Pin) -> None:
        line = msgspec.json.encode(pin) + b"\n"
        self._whole = False  # unless all goes well
        try:
            with open(self.path, "ab", buffering=0) as file:
                if file.write(line) != len(line):
                    raise OSError(None, "no space")
                os.fdatasync(file.fileno())
        except OSError:
            # Perhaps it is another's: root has written it anew, who took all back.
            self._rewrite((*self._pins, pin))
        else:
            self._pins, self._whole = (*self._pins, pin), True

    def _rewrite(self, pins: tuple[Pin, ...]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            durable.replace(self.path, _HEAD + b"".join(msgspec.json.encode(pin) + b"\n" for pin in pins))
        except OSError as error:
            raise self._cannot(error) from None
        self._pins, self._whole = pins, True

    def _cannot(self, error: OSError) -> StoreError:
        return StoreError(str(self.path), "a file that can be written", error.strerror or str(error))
