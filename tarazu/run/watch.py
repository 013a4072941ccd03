"""The leader's look at the spools while the step runs: what was created and closed so far.

It reads what the recorder has written to this node's memory, and other nodes' spools where these are visible
(`run.spool_dir` on a shared file system, with `%h` in it); of each only what has changed since the last look. A look
takes at most a twentieth of a core: the longer it takes, the longer until the next.
"""

from __future__ import annotations

import contextlib
import glob
import os
import struct
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec

from tarazu import trusted
from tarazu.errors import TarazuError, TraceError
from tarazu.model import JobStep
from tarazu.trace.follow import EndedSpools, LiveSpool, Name, Process, ProcessFile, from_node, split
from tarazu.trace.parser import dropped_name, parse_runs
from tarazu.trace.records import OUTCOMES, RunRecord
from tarazu.trace.spool import Spool, read_spools

SHARE = 0.05
"""Of the time that goes into looking."""
MAX_SPOOL_BYTES = 32 << 20
"""A spool with more than this is not looked at while the step runs: about 100,000 files of one process."""
MAX_ENDED_BYTES = 32 << 20
"""Of processes that have ended, so much is read in one look; the rest in the next ones."""
MAX_RUN_BYTES = 64 << 20
"""All spools together, to be read as one run."""
MOST_FILES = 250_000
"""So many are known, about 500 bytes each; what comes then is left to the end of the step."""
_HEADER = struct.Struct("<16xQ176xQ40xQ")
"""Bytes in use, and the counters of changes of a node file and of a spool (docs/formats.md)."""
_RACED = OUTCOMES.index("raced")


class _WatchedFile(msgspec.Struct, gc=False):
    """One file over all processes that were looked at."""

    processes: tuple[Process, ...] = ()
    outcome: int = -1
    """Index in OUTCOMES; −1: nobody created it."""

    def parts(self, name: Name) -> list[ProcessFile]:
        return [part for process in self.processes if (part := process.parts.get(name))]

    def is_open(self, name: Name) -> bool:
        return any(not p.ended and (part := p.parts.get(name)) and part.open for p in self.processes)


class SpoolNews(msgspec.Struct):
    """What one look showed."""

    files: dict[int, int | None] = msgspec.field(default_factory=dict)
    """News of placed files: row id → None when it was opened, its size when two looks in a row found it closed with
    that size. One that is made, closed and opened again by others, as MPI-IO does, is not closed for long; nor is a
    file done that is still empty."""
    outcomes: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """Of all files so far, by file system; empty when nothing has changed."""
    everywhere: bool = False
    """All nodes of the step were looked at."""


class SpoolWatch:
    """Looks at the spools of one step, from one thread."""

    def __init__(self, spool: str, here: Path, step: JobStep, over: threading.Event) -> None:
        """`spool`: with `%h` for the host; `here`: this node's; `over`: the step has ended."""
        self._pattern = glob.escape(spool).replace("%h", "*") if "%h" in spool else ""
        self._directories = set() if self._pattern else {here}
        self._step = step
        self._over = over
        self._used: dict[str, tuple[int, ...]] = {}
        self._live: dict[str, LiveSpool] = {}
        self._ended: dict[str, EndedSpools] = {}
        self._processes: dict[tuple[object, ...], Process] = {}
        self._files: dict[Name, _WatchedFile] = {}
        self._closed: dict[Name, int] = {}
        """Size of those that the last look found closed, and that were not a look before."""
        self._outcomes: dict[str, Counter[int]] = {}
        self._hosts: set[str] = set()
        self._ranks: set[int] = set()
        self._told_ranks = 0
        self._everywhere = False
        self.pause_s = 0.0
        """Until the next look, at least."""

    @property
    def full(self) -> bool:
        """No more files are taken in."""
        return len(self._files) > MOST_FILES

    def look(self) -> SpoolNews:
        """What has changed since the last look."""
        started = time.monotonic()
        used = self._headers()
        changed: set[Name] = set()
        whole = True
        for path in used:
            if self._over.is_set():
                return SpoolNews()
            if self._used.get(path) != used[path]:
                whole = self._read(path, used, changed) and whole
        whole = whole and not any(self._left_out(path, of) for path, of in used.items())
        news = used != self._used or bool(changed)
        self._used = used
        seen = SpoolNews(everywhere=self._is_everywhere(whole))
        if seen.everywhere and not self._everywhere:
            changed = set(self._files)  # shared files can be told of from now on
        self._everywhere = seen.everywhere
        self._settle(changed, seen)
        if news and whole and sum(size for size, *_ in used.values()) <= MAX_RUN_BYTES:
            seen.outcomes = {fs: self._counts(fs) for fs in self._outcomes}
        self.pause_s = (time.monotonic() - started) / SHARE
        return seen

    def runs(self) -> dict[str, RunRecord]:
        """The run so far, by file system, read anew; from any thread. Empty when it is too large for that."""
        used = self._used
        if sum(size for size, *_ in used.values()) > MAX_RUN_BYTES:
            return {}
        spools: list[Spool] = []
        for path in used:
            with contextlib.suppress(TraceError):  # also one that a process is about to begin
                spools += read_spools(path, own=True)
        return parse_runs(spools, self._step, with_phases=False) if spools else {}

    def _headers(self) -> dict[str, tuple[int, ...]]:
        """Of every spool of this step that is ours: bytes in use, and what tells whether it has changed.

        Those of processes that have ended come last: what has left its place on the way is there.
        """
        self._find_directories()
        paths = [str(path) for directory in self._directories for path in directory.glob("*.tzs")]
        headers: dict[str, tuple[int, ...]] = {}
        for path in sorted(paths, key=lambda p: (_is_ended(p), p)):
            with (
                contextlib.suppress(OSError, struct.error),
                open(trusted.open_file(path), "rb", buffering=0) as file,
            ):
                used, *changes = _HEADER.unpack(os.pread(file.fileno(), _HEADER.size, 0))
                size = os.fstat(file.fileno()).st_size
                headers[path] = (size, 0) if _is_ended(path) else (used, *changes)
        return headers

    def _find_directories(self) -> None:
        """Other nodes', where this one sees them; one that is trusted once stays so."""
        for name in glob.iglob(self._pattern) if self._pattern else ():
            directory = Path(name)
            if directory not in self._directories:
                with contextlib.suppress(OSError, TarazuError), trusted.opened(directory):
                    self._directories.add(directory)

    def _left_out(self, path: str, of: tuple[int, ...]) -> bool:
        return of[0] > MAX_SPOOL_BYTES and not _is_ended(path)

    def _read(self, path: str, used: dict[str, tuple[int, ...]], changed: set[Name]) -> bool:
        """What has changed in one spool; False when something had to be left out."""
        if self._left_out(path, used[path]) or self.full:
            return False
        size, *changes = used[path]
        if size < self._used.get(path, (0,))[0]:
            self._live.pop(path, None)  # no spool shrinks: it is another one
        complete = True
        with contextlib.suppress(
            TraceError, OSError, struct.error
        ):  # also one that a process is about to begin
            if path.endswith(".node.tzs"):
                processes = from_node(read_spools(path, own=True))
            else:
                with open(trusted.open_file(path), "rb", buffering=0) as file:
                    if _is_ended(path):
                        ended = self._ended.setdefault(path, EndedSpools())
                        processes = ended.update(file.fileno(), size, MAX_ENDED_BYTES)
                        complete = ended.read_to >= size
                        used[path] = (ended.read_to, 0)
                    else:
                        live = self._live.setdefault(path, LiveSpool())
                        processes = live.update(file.fileno(), size, changes[-1])
            for process in processes:
                self._know(process, changed)
        return complete

    def _know(self, process: Process, changed: set[Name]) -> None:
        before = self._processes.get(process.id)
        if before is not process:
            self._processes[process.id] = process
            self._hosts.add(process.header.host)
            self._ranks.add(process.header.rank)
            self._told_ranks = max(self._told_ranks, process.header.ranks)
        for name in before.parts if before and before is not process else ():
            file = self._files[name]
            file.processes = tuple(p for p in file.processes if p is not before)
            changed.add(name)
        alone = (process,)
        for name in process.touched:
            known = self._files.get(name)
            if known is None:
                self._files[name] = _WatchedFile(alone)
            elif process not in known.processes:
                known.processes = (*known.processes, process)
        changed |= process.touched
        process.touched = set()

    def _settle(self, changed: set[Name], seen: SpoolNews) -> None:
        before, self._closed = self._closed, {}
        for name in (*changed, *(before.keys() - changed)):
            file = self._files[name]
            parts = file.parts(name)
            if name in changed:
                self._count(name, file, parts)
            row_id = next((p.row_id for p in reversed(parts) if p.row_id), 0)
            size_bytes = max((p.size_bytes for p in parts), default=0)
            if not row_id:
                continue
            if file.is_open(name):
                seen.files[row_id] = None
            elif size_bytes and before.get(name) == size_bytes:
                seen.files[row_id] = size_bytes
            elif size_bytes:
                self._closed[name] = size_bytes

    def _count(self, name: Name, file: _WatchedFile, parts: list[ProcessFile]) -> None:
        """Under the outcome of the process that made the file, as the parser has it."""
        outcome = _outcome(parts)
        if outcome != file.outcome:
            fs_name, key = split(name)
            if dropped_name(key):
                return
            counts = self._outcomes.setdefault(fs_name, Counter())
            counts[file.outcome] -= 1
            counts[outcome] += 1
            file.outcome = outcome

    def _counts(self, fs_name: str) -> dict[str, int]:
        counts = self._outcomes[fs_name]
        return {name: counts[i] for i, name in enumerate(OUTCOMES) if counts[i] > 0}

    def _is_everywhere(self, whole: bool) -> bool:
        seen_ranks = len(self._ranks - {-1})
        return whole and len(self._hosts) >= self._step.nodes and seen_ranks >= self._told_ranks


def _outcome(parts: list[ProcessFile]) -> int:
    created = [p for p in parts if p.outcome >= 0]
    made = [p for p in created if not p.existed and p.outcome != _RACED]
    if made:
        return max(made, key=lambda p: p.time_ns).outcome
    return min(created, key=lambda p: p.time_ns).outcome if created else -1


def _is_ended(path: str) -> bool:
    """The spools of a node's processes that have ended lie in one file."""
    return path.endswith(".ended.tzs")
