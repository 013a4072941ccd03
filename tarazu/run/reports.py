"""Reports of ended steps that clientd did not take in time: kept beside the history, delivered by a later step."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import msgspec

from tarazu.errors import TarazuError
from tarazu.wire import local

KEPT_S = 7 * 86400.0
MAX_KEPT = 100
AT_ONCE = 10
"""So many are delivered by one later step, the oldest first."""


class Kept(msgspec.Struct, frozen=True):
    """One report, and the file of its run."""

    report: local.StepReport
    run: str


def keep(directory: Path, name: str, report: local.StepReport, run: Path) -> None:
    """Write a report down for later. Raises OSError."""
    directory.mkdir(mode=0o700, exist_ok=True)
    if sum(1 for _ in directory.iterdir()) >= MAX_KEPT:
        return
    part = directory / f".{name}.part"
    part.write_bytes(msgspec.json.encode(Kept(report, str(run))))
    part.rename(directory / f"{name}.report")


def deliver(directory: Path, socket: str, timeout_s: float) -> int:
    """Deliver what was kept; how many. Raises Unavailable as soon as clientd does not take one."""
    delivered = 0
    for path in sorted(directory.glob("*.report"))[:AT_ONCE]:
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime < KEPT_S and _deliver(path, socket, timeout_s):
                delivered += 1
            path.unlink()
    return delivered


def _deliver(path: Path, socket: str, timeout_s: float) -> bool:
    """False for one that cannot be delivered any more: damaged, or its run was forgotten."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Kept)
        descriptor = os.open(kept.run, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return False
    try:
        with local.connect(socket, timeout_s, deadline_s=timeout_s) as channel:
            answer = channel.ask(kept.report, [descriptor])
    finally:
        os.close(descriptor)
    if not isinstance(answer, local.Done):
        raise TarazuError(f"clientd: expected an acknowledgement, found {type(answer).__name__}")
    return True
