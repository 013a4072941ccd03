"""A queue of batch jobs as columns: of which application each is, what it writes and reads, on which of its nodes."""

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


MOST = 0.93
"""Of one node in an uneven job: well below the 95 % of rank-0 I/O."""
LEAST_NUD = 0.07
"""Of an uneven job: well above the 0.05 of an even one."""
REST = 0.05
"""At most so much of an uneven job's bytes do the others move."""
WRITERS = 6
"""At most so many nodes write for the others in a divergent application: with more, its jobs lie close together."""


def shares(queue: Queue, job: int) -> Floats:
    """Part of the job's bytes that each of its nodes moves, in the order of ranks: (size,), sum 1."""
    applications, at = queue.applications, int(queue.application[job])
    divergent = bool(applications.divergent[at])
    own = np.random.default_rng((queue.seed, 1, int(applications.seed[at])))
    now = np.random.default_rng((queue.seed, 2, job))
    writers = float(applications.writers[at])
    return drawn(TrafficPattern(int(queue.pattern[job])), int(queue.size[job]), writers, divergent, own, now)


def drawn(
    pattern: TrafficPattern,
    size: int,
    writers: float,
    divergent: bool,
    own: np.random.Generator,
    now: np.random.Generator,
) -> Floats:
    """The same with the numbers that are the application's `own`, and those that are of this job (`now`). `writers`:
    the part of its nodes that does the others' I/O where it is uneven."""
    if pattern == TrafficPattern.SINGLE:
        return np.ones(1)
    small = now.lognormal(0.0, 0.05, size)
    if pattern == TrafficPattern.EVEN:
        return _parts(own.lognormal(0.0, 0.07, size) * small)
    which = now if divergent else own
    if pattern == TrafficPattern.ROOT:
        parts = (1 - 0.96) * which.random() * _parts(small)
        at = int(now.integers(size)) if divergent else 0
        parts[at] += 1 - parts.sum()
        return parts
    return (
        _uneven(size, divergent, which) if size == 2 else _collected(size, writers, divergent, which, small)
    )


def _uneven(size: int, divergent: bool, which: np.random.Generator) -> Floats:
    """Of two nodes."""
    most = which.uniform(0.75, MOST)
    parts = np.array([most, 1 - most])
    return parts[::-1].copy() if divergent and which.random() < 0.5 else parts


def _collected(size: int, part: float, divergent: bool, which: np.random.Generator, small: Floats) -> Floats:
    """Some nodes, equally far from one another or (divergent) anywhere, collect most for the others."""
    writers = max(1, round(size * part))
    if divergent:
        writers = min(writers, WRITERS)
        at = which.choice(size, writers, replace=False)
    else:
        at = np.arange(writers) * (size // writers)
    parts = which.uniform(0.0, REST) * _parts(small)
    parts[at] += (1 - parts.sum()) * _parts(which.lognormal(0.0, 0.7, writers) * small[at])
    while parts.max() > MOST:
        parts = 0.9 * parts + 0.1 / size
    while 1 + float((parts * np.log(parts)).sum()) / np.log(size) < LEAST_NUD:
        parts = _parts(parts**1.3)
    return parts


def _parts(values: Floats) -> Floats:
    parts: Floats = values / values.sum()
    return parts
