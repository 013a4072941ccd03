"""What is usual for each OST, on disk: `usual.msgpack` in its directory, written every `WRITE_S` and at the end.

Losing it loses what was learned, nothing else: a file that cannot be used is set aside, and learning begins again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from itertools import islice
from pathlib import Path

import msgspec

from tarazu import durable
from tarazu.errors import StoreError
from tarazu.malformed import described
from tarazu.stats.usual import FIELDS, MOST_OSTS, OST_BYTES, Cells, Usual

log = logging.getLogger("tarazu.mdsd")

VERSION = 2
WRITE_S = 600.0
"""So much of what is learned over weeks may be lost."""
MOST_BYTES = 2 * MOST_OSTS * OST_BYTES


class _SideFile(msgspec.Struct, array_like=True):
    fs_name: str
    of: int | str
    """OST index, or server's name for the requests of all its OSTs."""
    writes: bool
    source: str
    cells: bytes


class _File(msgspec.Struct):
    version: int
    hours: float
    sides: list[_SideFile]


class _Version(msgspec.Struct):
    version: int


def dump(usual: Usual) -> bytes:
    """All of it, for a file; in any thread."""
    sides = [_SideFile(*key, side.source, side.cells.tobytes()) for key, side in list(usual.sides.items())]
    return msgspec.msgpack.encode(_File(VERSION, usual.hours, sides))


def load(usual: Usual, data: bytes, where: str) -> None:
    """What `dump` wrote. Raises StoreError, and changes nothing, for anything else; `where` names it."""
    try:
        if (version := msgspec.msgpack.decode(data, type=_Version).version) != VERSION:
            raise ValueError(f"version {version}")
        file = msgspec.msgpack.decode(data, type=_File)
        if not 0 <= file.hours < 1e9:
            raise ValueError(f"{file.hours} hours")
        sides = {
            (of.fs_name, of.of, of.writes): _side(of, file.hours) for of in islice(file.sides, 2 * MOST_OSTS)
        }
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise StoreError(where, f"usual times of I/Os, version {VERSION}", str(error)) from None
    usual.sides, usual.hours = sides, file.hours


def _side(of: _SideFile, hours: float) -> Cells:
    side = Cells(of.source, 0.0, 0.0)
    whole = len(side.cells)
    del side.cells[:]
    side.cells.frombytes(of.cells)
    named = isinstance(of.of, str) or 0 <= of.of < 2**16
    if not named or len(side.cells) != whole or not 0 <= side.begun_h <= side.seen_h <= hours + 1:
        raise ValueError(f"impossible values of {of.fs_name}'s OST {of.of}")
    for at in range(0, whole - 2, FIELDS):
        weight, at_h, seconds, size, flight, variance = side.cells[at : at + FIELDS]
        logs = all(abs(log) < 60 for log in (seconds, size, flight))  # NaN is none
        if not (0 <= weight < 1e9 and 0 <= at_h < 1e9 and 0 <= variance < 1e4 and logs):
            raise ValueError("impossible values in cell")
    return side


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
            load(self.usual, data, str(path))
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
                durable.replace(self._path, dump(self.usual), mode=0o600)


described(_File, _Version)
