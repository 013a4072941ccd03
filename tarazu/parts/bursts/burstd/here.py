"""What tarazu-burstd keeps on this node, as its files tell, with a daemon or without: for `tarazu change bursts`."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tarazu import config
from tarazu.batch.jobs import Job
from tarazu.errors import BadInput
from tarazu.parts.bursts.burstd.batch import machine_of
from tarazu.parts.bursts.burstd.jobs import Jobs
from tarazu.parts.bursts.burstd.kept import BurstsDirectory
from tarazu.parts.bursts.settings import directory_of, options_of
from tarazu.parts.bursts.traffic.machine import Machine


def traffic(settings: config.Settings) -> Path:
    """The directory of its days (`tarazu.parts.bursts.traffic.days`)."""
    return BurstsDirectory(directory_of(settings)).traffic


def jobs(settings: config.Settings, start_s: float, end_s: float) -> list[Job]:
    """Those that ran at any time in [start, end), by their start. Raises StoreError; BadInput where none were noted."""
    path = BurstsDirectory(directory_of(settings)).jobs
    if not path.exists():
        raise BadInput(str(path), "jobs that tarazu-burstd has noted", "no such file")
    with contextlib.closing(Jobs(path, read_only=True)) as kept:
        return kept.overlapping(start_s, end_s)


def gaps(settings: config.Settings) -> list[tuple[float, float]]:
    """Times in which nobody counted, (from, to) in seconds since 1970. Raises StoreError."""
    path = BurstsDirectory(directory_of(settings)).jobs
    if not path.exists():
        return []
    with contextlib.closing(Jobs(path, read_only=True)) as kept:
        return kept.gaps()


def machine(settings: config.Settings) -> Machine | None:
    """Where nodes stand, by `part.bursts.machine` or else Slurm's topology; None: nobody knows. Raises BadInput."""
    return machine_of(options_of(settings).machine)[0]
