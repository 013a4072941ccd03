"""What tarazu-burstd keeps on this node, as its files tell, with a daemon or without: for `tarazu change bursts`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from tarazu import config
from tarazu.batch.jobs import Job
from tarazu.batch.jobs import read as read_jobs
from tarazu.daemons.burstd.batch import machine_of
from tarazu.daemons.burstd.jobs import Jobs
from tarazu.daemons.burstd.kept import BurstsDirectory
from tarazu.errors import BadInput
from tarazu.forwarding.traffic.machine import Machine


def status(settings: config.Settings) -> dict[str, Any]:
    """As the daemon wrote it last (`written_s`); empty: it never has, or it may not be read."""
    return BurstsDirectory(settings.state.burstd).told()


def traffic(settings: config.Settings) -> Path:
    """The directory of its days (`tarazu.forwarding.traffic.days`)."""
    return BurstsDirectory(settings.state.burstd).traffic


def jobs(settings: config.Settings, start_s: float, end_s: float) -> list[Job]:
    """Those that ran at any time in [start, end), by their start; where the daemon keeps none, those of the file that
    `bursts.jobs` names. Raises StoreError, BadInput.
    """
    path = BurstsDirectory(settings.state.burstd).jobs
    if path.exists():
        with contextlib.closing(Jobs(path, read_only=True)) as kept:
            return kept.overlapping(start_s, end_s)
    if settings.bursts.jobs == "slurm":
        raise BadInput(str(path), "jobs that tarazu-burstd has noted", "no such file")
    listed = read_jobs(Path(settings.bursts.jobs))
    overlapping = [job for job in listed.jobs if job.start_s < end_s and job.end_s > start_s]
    return sorted(overlapping, key=lambda job: (job.start_s, job.id))


def gaps(settings: config.Settings) -> list[tuple[float, float]]:
    """Times in which nobody counted, (from, to) in seconds since 1970. Raises StoreError."""
    path = BurstsDirectory(settings.state.burstd).jobs
    if not path.exists():
        return []
    with contextlib.closing(Jobs(path, read_only=True)) as kept:
        return kept.gaps()


def machine(settings: config.Settings) -> Machine | None:
    """Where nodes stand, by `bursts.machine` or else Slurm's topology; None: nobody knows. Raises BadInput."""
    return machine_of(settings.bursts.machine)
