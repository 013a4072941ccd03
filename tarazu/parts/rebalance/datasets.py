"""Sets of files that are read or rewritten together, how much of each and how often; from Darshan logs and history."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from tarazu.allocate.problem import Array
from tarazu.parts.rebalance.files import Files
from tarazu.trace.darshan.log import DarshanLog
from tarazu.trace.places import linked_names, lustre_mounts
from tarazu.trace.records import RunRecord
from tarazu.units import counted

DAY_S = 86400.0
READ_LATER_S = 3600
"""A file was read after it was written where its last read is so much later than its last write."""
LEAST_SPAN_DAYS = 1.0
"""Runs that all are of one day are taken for the runs of a day, not for many a day."""


class Dataset(msgspec.Struct, frozen=True):
    """Files that one application moves in one go, so that it waits for the slowest OST."""

    name: str
    files: Array
    """Numbers in `Files`."""
    times: Array
    """How often each byte of a file is moved when the set is: 1 for once, of a part less."""
    per_day: float
    """How often the set is moved."""
    evidence: str
    """Where that is known from; `assumed` where it is not."""


class Use(msgspec.Struct, frozen=True):
    """One run of an application, as a Darshan log has it."""

    application: str
    start_s: float
    """Unix time."""
    moved: Mapping[str, int]
    """Path → bytes read and written."""


def of_runs(files: Files, uses: Sequence[Use]) -> tuple[list[Dataset], int]:
    """One dataset for each application and set of files, and the number of files in logs that are not among `files`.

    Runs of one application that moved mostly the same files are one dataset, moved as often as they ran.
    """
    number = {files.path(i): i for i in range(len(files))}
    sizes = files.sizes
    missing: set[str] = set()
    grouped: dict[tuple[str, frozenset[int]], list[tuple[float, dict[int, int]]]] = defaultdict(list)
    for use in uses:
        here = {number[path]: size for path, size in use.moved.items() if path in number and size}
        missing |= use.moved.keys() - number.keys()
        if here:
            grouped[use.application, frozenset(here)].append((use.start_s, here))
    every = [start for runs in grouped.values() for start, _ in runs]
    days = max(LEAST_SPAN_DAYS, (max(every) - min(every)) / DAY_S) if every else 1.0
    made = []
    for (application, members), runs in grouped.items():
        of = np.array(sorted(members), np.int64)
        moved = np.array([np.mean([size[i] for _, size in runs]) for i in of.tolist()])
        made.append(
            Dataset(
                application,
                of,
                moved / np.maximum(1, sizes[of]),
                len(runs) / days,
                f"{counted(len(runs), 'Darshan log')} of {days:.3g} days",
            )
        )
    return sorted(made, key=lambda d: (-d.per_day, d.name, d.files.tolist()[:1])), len(missing)


RECENT_DAYS = 30.0


def of_directories(
    files: Files, per_day: float | None, now_s: float, taken: Array | None = None
) -> list[Dataset]:
    """One dataset for each directory; files that are in `taken` (numbers) are in another dataset already.

    per_day: how often each is read. None: once a day where files were read within `RECENT_DAYS`, at least an hour
    after they had been written; not at all elsewhere.
    """
    free = np.ones(len(files), bool)
    if taken is not None:
        free[taken] = False
    members: dict[str, list[int]] = defaultdict(list)
    for i in np.flatnonzero(free).tolist():
        members[os.path.dirname(files.path(i))].append(i)
    accessed, modified = files.accessed_s, files.modified_s
    made = []
    for directory, numbers in sorted(members.items()):
        of = np.array(numbers, np.int64)
        read = (accessed[of] > modified[of] + READ_LATER_S) & (accessed[of] > now_s - RECENT_DAYS * DAY_S)
        if per_day is not None:
            rate, evidence = per_day, "told"
        elif read.any():
            rate, evidence = (
                1.0,
                f"assumed: {int(read.sum())} of {counted(len(of), 'file')} were read within {RECENT_DAYS:g} days",
            )
        else:
            rate, evidence = 0.0, f"not read within {RECENT_DAYS:g} days"
        made.append(Dataset(directory, of, np.ones(len(of)), rate, evidence))
    return made


def of_log(log: DarshanLog) -> Use:
    """What the job read of files on Lustre, by their paths of then."""
    moved: dict[str, int] = defaultdict(int)
    rows = log.accesses
    mounted, linked = lustre_mounts(log), linked_names(log)
    for record, size in zip(rows["record"].tolist(), rows["read_bytes"].tolist(), strict=True):
        name = log.names.get(record, "")
        mount = log.mount_of(name) if size else None
        believed = linked.get(name) if size else None
        if believed is not None:
            moved[os.path.realpath(name) if os.access(name, os.F_OK) else believed or name] += size
        elif mount and mount.path in mounted:
            moved[name] += size
    return Use(log.application or log.path, log.start_s, moved)


def of_history(runs: Iterable[RunRecord], mounts: Mapping[str, str]) -> list[Use]:
    """Files that were there when a run opened them to write: they keep their OSTs, however often they are rewritten.

    mounts: file system name → its mount point.
    """
    made = []
    for run in runs:
        mount = mounts.get(run.step.fs_name)
        if mount is None:
            continue
        moved = {mount + f.key: f.written_bytes or f.size_bytes for f in run.files if f.existed}
        made.append(Use(run.step.application, run.start_s, moved))
    return made
