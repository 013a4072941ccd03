"""The MDTs of an MDS as it counts them, in the report of its ossd: `md_stats` as a row for each operation, and which
jobs make most of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tarazu.figures import Family, gauge
from tarazu.part import InReport
from tarazu.parts.mdt.messages import MAX_MDTS, MAX_OPERATIONS, MdtJob, MdtOperation, MdtReport, MdtReports
from tarazu.stats import counters
from tarazu.stats.mds_load import COUNTED_TWICE, busiest, grown, operations
from tarazu.stats.params import find, is_mdt, mdt_name, mdt_target
from tarazu.units import KIB
from tarazu.wire.bounds import MAX_ID_CHARACTERS, MAX_SOURCE_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tarazu.stats.collector import Collector

MOST_OPERATIONS = 4
"""Named of an MDT in `--once`: those that were counted most."""
CREATES = ("mknod", "mkdir")
"""Operations that make something; an open that creates is counted as `open` and as `mknod`."""


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


class InReportMdt(InReport):
    def __init__(self) -> None:
        self._jobs = MdtJobs()
        self._count = 0

    def read(self, of: Collector) -> bytes | None:
        if not any(is_mdt(device) for device in find(of.root, "mdt.*.md_stats")):
            return None
        counted = of.files("mdt.*.md_stats", parse, mdt_target)
        space = {n: of.files(f"mdt.*.{n}", counters.whole_number, mdt_target) for n in CAPACITY}
        flags = {n: of.files(f"mdt.*.{n}", counters.whole_number, mdt_target) for n in FLAGS}
        did = {}
        for device, path in of.found("mdt.*.job_stats").items():
            if is_mdt(device):
                jobs = of.guard("mdt.*.job_stats", lambda path=path: operations(path), str(path))  # type: ignore[misc]
                if jobs is not None:
                    did[device] = jobs
        jobs_of = self._jobs.take(did)
        whole = [
            device
            for device in sorted(space["kbytestotal"])
            if all(device in each for each in space.values())
        ]
        reports: dict[tuple[str, int], MdtReport] = {}
        for device in whole:
            target = mdt_target(device)
            if target is None or target in reports or len(target[0]) > MAX_ID_CHARACTERS:
                continue
            stats = counted.get(device)
            reports[target] = MdtReport(
                fs_name=target[0],
                index=target[1],
                total_bytes=space["kbytestotal"][device] * KIB,
                avail_bytes=space["kbytesavail"][device] * KIB,
                files_total=space["filestotal"][device],
                files_free=space["filesfree"][device],
                operations=stats.operations if stats else (),
                counters_start_s=stats.start_s if stats else 0.0,
                jobs=jobs_of.get(device, ()),
                no_create=bool(flags["no_create"].get(device, 0)),
                readonly=bool(flags["readonly"].get(device, 0)),
            )
        self._count = len(reports)
        said = MdtReports(tuple(reports.values())[:MAX_MDTS], of.failed("mdt.*.md_stats"))
        return msgspec.msgpack.encode(said)

    def families(self) -> Iterator[Family]:
        yield gauge("ossd_mdts", "MDTs in the last report.", self._count)


def lines(said: bytes) -> list[str]:
    """For `tarazu-ossd --once`."""
    return [*map(_line, msgspec.msgpack.decode(said, type=MdtReports).mdts)]


def _line(mdt: MdtReport) -> str:
    used = 1 - mdt.files_free / mdt.files_total if mdt.files_total else 0.0
    done = "operations: unknown"
    if mdt.operations:
        most = nlargest(MOST_OPERATIONS, mdt.operations, key=lambda of: of.count)
        done = ", ".join(f"{of.count} {of.name}" for of in most)
    flags = "".join(f", {flag}" for flag in FLAGS if getattr(mdt, flag))
    return f"{mdt_name(mdt.fs_name, mdt.index)}: {used:.1%} of {mdt.files_total} inodes used, {done}{flags}"
