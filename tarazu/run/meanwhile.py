"""What a run is remembered with beside its files: on which OSTs they lie, and how those and their servers were.

Nobody waits for it: what is not known within a part of the time that the last reports have is not remembered.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tarazu.errors import LayoutError, TarazuError
from tarazu.lustre import XATTR_LUSTRE_LOV
from tarazu.store.placed import ost_bytes, whole
from tarazu.then import OstThen, System

if TYPE_CHECKING:
    from tarazu.run.step import Step
    from tarazu.stats import client
    from tarazu.trace.records import FileRecord, RunRecord

MOST_LOOKED = 500
"""Files whose layouts are read, the largest: they stand for all."""
MOST_OSTS = 512
"""Of which a run says how they were."""
LOOK_S = 0.15
"""For reading them, if the last reports have as much left."""


def noted(step: Step, run: RunRecord) -> RunRecord:
    """The run with its OSTs and its system, as far as they are to be had now. Never raises TarazuError."""
    begin = time.monotonic()
    look_s = min(LOOK_S, step.reports.left_s / 2)
    run = msgspec.structs.replace(run, ost_bytes=_laid(step.mounts, run, look_s))
    step.reports.spend(time.monotonic() - begin)
    if not run.ost_bytes:
        return run
    from_s, to_s = when(run)
    now_s = time.time()
    ago = max(0.0, now_s - from_s), max(0.0, now_s - to_s)
    try:
        system = step.reports.then(run.step.fs_name, tuple(run.ost_bytes), *ago)
    except TarazuError:
        return run
    return msgspec.structs.replace(run, system=system and _bounded(system))


def _bounded(system: System) -> System:
    """With no more OSTs than a run's header should hold, and their servers: the slow, the full, the loaded ones."""

    def plain(item: tuple[int, OstThen]) -> tuple[bool, float, float]:
        ost = item[1]
        return not ost.verdict.amiss, 1.0 if ost.speed is None else ost.speed, -(ost.bytes or 0.0)

    osts = dict(sorted(sorted(system.osts.items(), key=plain)[:MOST_OSTS]))
    names = {ost.server for ost in osts.values()}
    servers = {name: server for name, server in system.servers.items() if name in names}
    return msgspec.structs.replace(system, osts=osts, servers=servers)


def _laid(mounts: Sequence[client.Mount], run: RunRecord, look_s: float) -> dict[int, int]:
    """Bytes on each OST; empty where too little is known. `look_s`: for layouts that are not known. A file system that
    hangs is left to itself.
    """
    known: Counter[int] = Counter(ost_bytes(run.files)[0])
    largest = sorted((f for f in run.files if not f.layout), key=lambda file: -file.size_bytes)[:MOST_LOOKED]
    looked: list[FileRecord] = []
    mounts = [mount for mount in mounts if mount.fs_name == run.step.fs_name]

    def look() -> None:
        until = time.monotonic() + look_s
        for file in largest:
            if time.monotonic() > until:
                return
            if blob := _layout(mounts, file):
                looked.append(msgspec.structs.replace(file, layout=blob))

    if look_s > 0:
        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        thread.join(2 * look_s)  # it ends by itself, unless a call hangs
    try:
        known.update(ost_bytes(list(looked))[0])
    except LayoutError:
        return {}
    return whole(dict(known), sum(file.size_bytes for file in run.files))


def _layout(mounts: Sequence[client.Mount], file: FileRecord) -> bytes:
    for mount in mounts:
        if file.key.startswith(f"{mount.subdirectory}/"):
            path = mount.path.rstrip("/") + file.key[len(mount.subdirectory) :]
            try:
                return os.getxattr(path, XATTR_LUSTRE_LOV)
            except OSError:
                continue
    return b""


def when(run: RunRecord) -> tuple[float, float]:
    """(begin, end) of its I/O, Unix time; of the run where no phases are known."""
    begins = [phase.start_s for phase in run.phases]
    ends = [phase.end_s for phase in run.phases]
    return run.start_s + min(begins, default=0.0), run.start_s + max(ends, default=run.duration_s)
