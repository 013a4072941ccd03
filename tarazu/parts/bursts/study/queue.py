"""A queue of batch jobs as columns, what each of them writes and reads, and of which application it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tarazu.batch.jobs import Job
from tarazu.sim.kernel.fluid import Floats, Ints

Flags = npt.NDArray[np.bool_]


class TrafficPattern(IntEnum):
    """How a job's traffic lies on its nodes (spatially-bursty-io, 3.2)."""

    SINGLE = 0
    """It has one node."""
    ROOT = 1
    """More than 95 % on one of several nodes."""
    EVEN = 2
    """NUD of at most 0.05."""
    UNEVEN = 3
    """All ranks, NUD above 0.05: a part of the nodes collects for the others."""


@dataclass(frozen=True, eq=False)
class Applications:
    """One entry each: (applications,)."""

    size: Ints
    """Nodes of each of its jobs."""
    divergent: Flags
    """Which of the nodes write is another matter in each job."""
    writers: Floats
    """Part of the nodes that moves most of the bytes where its traffic is uneven."""
    seed: Ints
    """Of the numbers that are the application's own."""

    def __len__(self) -> int:
        return len(self.size)

    def name(self, application: int) -> str:
        return f"app{application}"

    def user(self, application: int) -> str:
        return f"user{application // 3}"


@dataclass(frozen=True, eq=False)
class Queue:
    """Jobs in the order of their submission; each column is (jobs,)."""

    submit_s: Floats
    size: Ints
    """Nodes."""
    run_s: Floats
    """How long it runs where its I/O takes `io_s`."""
    limit_s: Floats
    """Run time that its user asked for, by which backfill goes."""
    application: Ints
    """Index into `applications`."""
    pattern: Ints
    """`TrafficPattern`."""
    intensive: Flags
    volume: Floats
    """Bytes that it reads and writes."""
    network: Floats
    """Bytes that its nodes send one another and receive."""
    bursts: Ints
    """Phases of I/O, equal and equally far from one another: the first reads, the others write."""
    io_s: Floats
    """Seconds of the run time that the phases take together."""
    applications: Applications
    seed: int

    def __len__(self) -> int:
        return len(self.submit_s)

    def batch_job(self, job: int, names: tuple[str, ...], start_s: float, end_s: float) -> Job:
        """As Slurm would remember it; `names` of its nodes in the order of ranks."""
        at = int(self.application[job])
        return Job(
            str(job + 1),
            self.applications.user(at),
            self.applications.name(at),
            names,
            start_s,
            end_s,
            float(self.submit_s[job]),
            "COMPLETED",
        )
