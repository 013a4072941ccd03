"""A directory with an append-only log and the snapshot it follows, for what must not be lost when power fails.

    snapshot-<n>    the state after record n; written beside, synced, renamed
    log-<n>         the records after n, in frames (tarazu/store/frames.py); several while a snapshot is written
    damaged-…       a file with a place that could not be read, kept for people

One process at a time has it open. `append` writes and syncs once. A write that failed is cut off before the next one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tarazu import locks
from tarazu.errors import StoreError
from tarazu.store import frames
from tarazu.store.frames import Damage, Frame

log = logging.getLogger("tarazu.store")

_NAME = re.compile(r"(snapshot|log)-(\d{20})")


class JournalFiles(NamedTuple):
    """What is in a directory: snapshots and logs, oldest first."""

    snapshots: list[Path]
    logs: list[Path]


def base_of(path: Path) -> int:
    """Number of the last record before this file's first."""
    match = _NAME.fullmatch(path.name)
    assert match
    return int(match[2])


def find(directory: Path) -> JournalFiles:
    """Raises OSError."""
    names = sorted(p for p in directory.iterdir() if _NAME.fullmatch(p.name))
    return JournalFiles(
        [p for p in names if p.name.startswith("snapshot")], [p for p in names if p.name.startswith("log")]
    )


class Content:
    """Reads a directory: first `snapshot`, then `records`; `damages` are known behind them. Changes nothing."""

    def __init__(self, directory: Path) -> None:
        """Raises OSError."""
        self.directory = directory
        self.found = find(directory)
        self.damages: list[Damage] = []
        self.torn: Damage | None = None
        """The end of the last log, when a write there was cut off."""
        self.bytes = 0

    def snapshot(self) -> Iterator[tuple[Path, Frame]]:
        """Frames of the newest snapshot without damage; of the newest one when all are damaged."""
        for path in reversed(self.found.snapshots):
            if not any(isinstance(part, Damage) for part in frames.read(path)):
                break
        else:
            path = self.found.snapshots[-1] if self.found.snapshots else Path()
        for part in frames.read(path) if self.found.snapshots else ():
            if isinstance(part, Frame):
                yield path, part
            else:
                self.damages.append(part)

    def records(self) -> Iterator[tuple[Path, Frame]]:
        """Frames of all logs, in order; those before the snapshot too."""
        for path in self.found.logs:
            for part in frames.read(path):
                if isinstance(part, Frame):
                    yield path, part
                elif part.at_end and path == self.found.logs[-1]:
                    self.torn = part
                else:
                    self.damages.append(part)
            self.bytes += path.stat().st_size


class Journal:
    """Opens a directory; what is in it comes from `content`, then `start`."""

    def __init__(self, directory: Path) -> None:
        """Raises StoreError when another process has it, or it cannot be made."""
        self.directory = directory
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise StoreError(
                str(directory), "a directory for the ledger (below state.directory)", error.strerror
            ) from None
        try:
            locks.need(self._lock, directory)
        except BlockingIOError:
            os.close(self._lock)
            raise StoreError(
                str(directory), "a ledger that no other process uses: is a tarazu-mdsd running?"
            ) from None
        except StoreError:
            os.close(self._lock)
            raise
        self.bytes = 0
        """Of the log that is written now."""
        self.snapshot_bytes = 0
        """Of the newest snapshot that was written."""
        self._file = -1
        self._path = Path()
        self._dirty = False
        """Behind `bytes` may lie what a failed write left."""
        self._writer: threading.Thread | None = None
        self._written: OSError | None = None

    def content(self) -> Content:
        """Raises OSError."""
        return Content(self.directory)

    def resume(self, path: Path, torn: Damage | None) -> None:
        """Append to this log. Raises OSError."""
        self._close_file()
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        end = torn.offset if torn else os.fstat(fd).st_size
        self._file, self._path, self.bytes, self._dirty = fd, path, end, torn is not None
        if torn and end < frames.HEADER_BYTES:
            os.ftruncate(fd, 0)
            os.pwrite(fd, frames.header(base_of(path)), 0)
            self.bytes = frames.HEADER_BYTES
            os.fsync(fd)

    def roll(self, base: int) -> None:
        """Begin a new log behind record `base`. Raises OSError; then the old one stays in use."""
        path = self.directory / f"log-{base:020}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write(fd, frames.header(base), 0)
            os.fsync(fd)
            os.fsync(self._lock)
        except OSError:
            os.close(fd)
            with contextlib.suppress(OSError):
                path.unlink()
            raise
        self._close_file()
        self._file, self._path, self.bytes, self._dirty = fd, path, frames.HEADER_BYTES, False

    def append(self, first: int, payload: bytes) -> None:
        """Write one frame and sync it. Raises OSError; nothing of it counts then, and the next try cuts it off."""
        if self._dirty:
            os.ftruncate(self._file, self.bytes)
        data = frames.frame(first, payload)
        self._dirty = True
        _write(self._file, data, self.bytes)
        os.fdatasync(self._file)
        self.bytes += len(data)
        self._dirty = False

    def compact(self, base: int, payloads: Iterable[bytes], done: Callable[[], None] = lambda: None) -> None:
        """Write the state after record `base` as a snapshot, in a thread; then what it makes unnecessary goes.

        `payloads` are taken in the thread. Call `roll(base)` before, `compacted` after `done` was called.
        """
        assert self._writer is None
        self._written = None

        def write() -> None:
            try:
                self.write_snapshot(base, payloads)
            except OSError as error:
                self._written = error
            done()

        self._writer = threading.Thread(target=write, name="tarazu-snapshot", daemon=True)
        self._writer.start()

    @property
    def compacting(self) -> bool:
        return self._writer is not None

    def compacted(self, wait: bool = False) -> bool:
        """Whether the snapshot that was being written is there. Raises OSError when it cannot be."""
        if self._writer is None or (self._writer.is_alive() and not wait):
            return False
        self._writer.join()
        self._writer = None
        if self._written:
            raise self._written
        return True

    def write_snapshot(
        self, base: int, payloads: Iterable[bytes], aside: Iterable[Path] = (), of_another: bool = False
    ) -> None:
        """What it makes unnecessary goes; damaged files are kept `aside`. Raises OSError.

        `of_another`: of another ledger, whose numbers say nothing about the files that are there.
        """
        path = self.directory / f"snapshot-{base:020}"
        beside = path.with_suffix(".new")
        try:
            with beside.open("wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(frames.header(base))
                for payload in payloads:
                    file.write(frames.frame(base, payload))
                file.flush()
                os.fsync(file.fileno())
                self.snapshot_bytes = file.tell()
            beside.rename(path)
            os.fsync(self._lock)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
        for damaged in aside:
            self._set_aside(damaged)
        for left in set(self.directory.glob("*.new")):
            left.unlink()
        files = find(self.directory)
        for old in (*files.snapshots, *files.logs):
            if (base_of(old) < base or (of_another and old != path)) and old != self._path:
                old.unlink()

    def _set_aside(self, path: Path) -> None:
        """Keep a damaged file under a name that is not read again. Raises OSError."""
        number = 1
        while (aside := path.with_name(f"damaged-{path.name}-{number}")).exists():
            number += 1
        path.rename(aside)
        os.fsync(self._lock)
        log.error("%s: kept as %s", path, aside.name)

    def close(self) -> None:
        if self._writer:
            self._writer.join()
        self._close_file()
        os.close(self._lock)

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _write(fd: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(fd, left, offset)
        left, offset = left[written:], offset + written
