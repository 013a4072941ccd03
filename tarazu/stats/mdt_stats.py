"""One MDT as its server counts it: `md_stats` as a row for each operation, and which jobs make most of them."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest
from typing import NamedTuple

from tarazu.stats import counters, job_stats
from tarazu.wire.bounds import MAX_OPERATIONS, MAX_SOURCE_CHARACTERS
from tarazu.wire.reports import MdtJob, MdtOperation

BYTES = ("read_bytes", "write_bytes")
"""Rows of `md_stats` that count what other rows have counted."""
COUNTED_TWICE = (
    *BYTES,
    "samedir_rename",
    "crossdir_rename",
    "parallel_rename_file",
    "parallel_rename_dir",
    "rename_trylocks",
)
"""These too: each `rename` is one of the first two, and may be one of the others."""
CREATES = ("mknod", "mkdir")
"""Operations that make something; an open that creates is counted as `open` and as `mknod`."""
MAX_JOBS = 10
"""Named: those with most operations."""


class MdStats(NamedTuple):
    operations: tuple[MdtOperation, ...]
    start_s: float
    """As `counters.Stats`."""


def params() -> tuple[str, ...]:
    return ("mdt.*.md_stats", "mdt.*.job_stats", *(f"mdt.*.{name}" for name in (*CAPACITY, *FLAGS)))


CAPACITY = ("filestotal", "filesfree", "kbytestotal", "kbytesavail")
"""Of an MDT's `osd-*`."""
FLAGS = ("no_create", "readonly")
"""Absent in some versions: then they are 0."""


def parse(text: str) -> MdStats:
    """Raises ValueError as `counters.parse`. 2.12 counts operations and times none: then their times are 0. One whose
    count is not known has 0 operations.
    """
    stats = counters.parse(text)
    timed = "[usecs]" in text
    rows = [
        MdtOperation(name, row.samples, row.sum if timed else 0)
        for name, row in (dict.fromkeys(stats.unknown, counters.ZERO) | stats.rows).items()
        if (row.samples or name in stats.unknown)
        and name not in COUNTED_TWICE
        and len(name) <= MAX_SOURCE_CHARACTERS
    ]
    return MdStats(tuple(rows[:MAX_OPERATIONS]), stats.start_s)


def grown(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """Operations of each job since `before`; one that was dropped when idle, and began anew, counts from 0."""
    more = {name: total - before.get(name, 0) for name, total in now.items()}
    return {name: of if of >= 0 else now[name] for name, of in more.items() if of}


def busiest(jobs: Mapping[str, int], most: int = MAX_JOBS) -> list[tuple[str, int]]:
    """Those of most operations, most first; `jobs`: job id as the file has it → operations."""
    chosen = nsmallest(most, jobs.items(), key=lambda job: (-job[1], job[0]))
    return [(job_stats.unquote(name), count) for name, count in chosen]


class MdtJobs:
    """What jobs did on each MDT between two readings: `take` with each, once for each MDT that can be read."""

    def __init__(self) -> None:
        self._before: dict[str, Mapping[str, int]] = {}

    def take(self, now: Mapping[str, Mapping[str, int]]) -> dict[str, tuple[MdtJob, ...]]:
        """`now`: MDT → job id → operations. Of an MDT that was not read before, nothing is known."""
        before, self._before = self._before, dict(now)
        return {
            mdt: tuple(
                MdtJob(name, min(count, counters.MAX_COUNT))
                for name, count in busiest(grown(jobs, before[mdt]))
            )
            for mdt, jobs in now.items()
            if mdt in before
        }
