"""What a running job step says of itself, for who looks for it: a small file beside its control page."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tarazu.malformed import MALFORMED
from tarazu.names import to_text

NAME = "about"
MOST_BYTES = 64 << 10


class About(msgspec.Struct, frozen=True):
    """A job step that runs."""

    run: str
    application: str
    job_id: str
    array_job: str
    array_index: int | None
    mode: str
    ranks: int
    nodes: int
    host: str
    """Of its leader."""
    pid: int
    started_s: float
    """Unix time."""


def write(directory: str | os.PathLike[str], about: About) -> None:
    """Into the directory of the step's maps. Not synced: nobody misses it after a crash. Raises OSError."""
    fields = {name: to_text(v) if isinstance(v, str) else v for name, v in msgspec.to_builtins(about).items()}
    (Path(directory) / NAME).write_bytes(msgspec.json.encode(fields))


def read(directory: str | os.PathLike[str]) -> About | None:
    """None where there is none: its leader is of an earlier version, it has just begun, or just ended."""
    try:
        descriptor = os.open(
            Path(directory) / NAME, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        )
        with open(descriptor, "rb") as file:
            return msgspec.json.decode(file.read(MOST_BYTES), type=About)
    except (OSError, *MALFORMED):
        return None


def of_job(wanted: str, job_id: str, array_job: str = "", array_index: int | None = None) -> bool:
    """Is a step one of that job? `4711`, `4711.pbs1`, an array `4710` or its task `4710_3`."""
    task = f"{array_job}_{array_index}" if array_job else ""
    return bool(wanted) and (wanted in (job_id, array_job, task) or job_id.startswith(f"{wanted}."))
