"""The leader's look at the spools while the step runs: what was created and closed so far.

It reads what the recorder has written to this node's memory, and other nodes' spools where these are visible
(`run.spool_dir` on a shared file system, with `%h` in it). A look takes at most a twentieth of a core: the
longer it takes, the longer until the next; what is too large for that is left to the end of the step.
"""

from __future__ import annotations

import contextlib
import glob
import os
import struct
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tarazu.errors import TraceError
from tarazu.model import JobStep
from tarazu.trace.parser import parse_runs
from tarazu.trace.records import RunRecord
from tarazu.trace.spool import Spool, read_spools

SHARE = 0.05
"""Of the time that goes into looking."""
MAX_SPOOL_BYTES = 32 << 20
"""A spool with more than this is not looked at while the step runs: about 100,000 files of one process."""
MAX_RUN_BYTES = 64 << 20
"""All spools together, to be seen as one run; beyond, each is looked at alone."""
_HEADER = struct.Struct("<16xQ176xQ40xQ")
"""Bytes in use, and the counters of changes of a node file and of a spool (docs/formats.md)."""


_Name = tuple[str, str]
"""File system and key."""


@dataclass
class _File:
    """One file over all processes that were looked at."""

    row_id: int = 0
    open: bool = False
    size_bytes: int = 0


@dataclass
class Seen:
    """What one look showed."""

    files: dict[int, int | None] = field(default_factory=dict)
    """Row id of each placed file → its size when closed, None while a process still has it open."""
    runs: dict[str, RunRecord] = field(default_factory=dict)
    """The run so far, by file system; empty when it is too large for a look."""
    everywhere: bool = False
    """All nodes of the step were looked at."""


class Watch:
    """Looks at the spools of one step, from one thread."""

    def __init__(self, spool: str, here: Path, step: JobStep, over: threading.Event) -> None:
        """`spool`: with `%h` for the host; `here`: this node's; `over`: the step has ended."""
        self._pattern = f"{glob.escape(spool).replace('%h', '*')}/*.tzs" if "%h" in spool else ""
        self._here = here
        self._step = step
        self._over = over
        self._seen: dict[str, tuple[int, ...]] = {}
        self.pause_s = 0.0
        """Until the next look, at least."""

    def look(self) -> Seen | None:
        """None when nothing was recorded since the last look."""
        started = time.monotonic()
        used = self._used()
        if used == self._seen:
            return None
        seen = self._read(used)
        if self._over.is_set():
            return None
        self._seen = used
        self.pause_s = (time.monotonic() - started) / SHARE
        return seen

    def _used(self) -> dict[str, tuple[int, ...]]:
        """Of every spool of this step that is ours: bytes in use, and what tells whether it has changed."""
        paths: Iterable[str] = map(str, self._here.glob("*.tzs"))
        if self._pattern:
            paths = {*paths, *glob.iglob(self._pattern)}
        found: dict[str, tuple[int, ...]] = {}
        for path in sorted(paths):
            with contextlib.suppress(OSError, struct.error), open(path, "rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_uid == os.geteuid():
                    used, *changes = _HEADER.unpack(os.pread(file.fileno(), _HEADER.size, 0))
                    # Those of processes that have ended lie in one file, which grows.
                    size = os.fstat(file.fileno()).st_size if path.endswith(".ended.tzs") else used
                    found[path] = (size, *changes)
        return found

    def _read(self, used: dict[str, tuple[int, ...]]) -> Seen:
        whole = sum(size for size, *_ in used.values()) <= MAX_RUN_BYTES
        spools: list[Spool] = []
        files: dict[_Name, _File] = {}
        seen = Seen()
        hosts: set[str] = set()
        ranks: set[int] = set()
        told = 0
        for path, (used_bytes, *_) in used.items():
            if self._over.is_set():
                break
            if used_bytes > MAX_SPOOL_BYTES:
                whole = False
                continue
            with contextlib.suppress(TraceError):  # also one that a process is about to begin
                for spool in read_spools(path):
                    hosts.add(spool.header.host)
                    ranks.add(spool.header.rank)
                    told = max(told, spool.header.ranks)
                    self._add(files, spool)
                    spools += [spool] if whole else []
            if not whole:
                spools.clear()
                # Only files of one process can be told of without the others.
                seen.files |= settled(files)
                files.clear()
        seen.files |= settled(files)
        seen.everywhere = whole and len(hosts) >= self._step.nodes and len(ranks - {-1}) >= told
        if whole and spools:
            seen.runs = parse_runs(spools, self._step)
        return seen

    def _add(self, files: dict[_Name, _File], spool: Spool) -> None:
        opened: dict[_Name, int] = {}
        for create in spool.creates:
            name = create.fs_name, create.key
            file = files.setdefault(name, _File())
            file.row_id = create.row_id or file.row_id
            opened[name] = create.time_ns
        for again in spool.opens:
            name = again.fs_name, again.key
            files.setdefault(name, _File())
            opened[name] = max(again.time_ns, opened.get(name, 0))
        for close in spool.closes:
            name = close.fs_name, close.key
            file = files.setdefault(name, _File())
            file.size_bytes = max(file.size_bytes, close.size_bytes)
            if opened.get(name, close.time_ns) <= close.time_ns:
                opened.pop(name, None)
        if not spool.ended:
            for name in opened:
                files[name].open = True


def settled(files: dict[_Name, _File]) -> dict[int, int | None]:
    """Row id → size, None while open, of the files that were placed."""
    return {f.row_id: None if f.open else f.size_bytes for f in files.values() if f.row_id}
