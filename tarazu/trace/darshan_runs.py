"""Imports a Darshan log as a run. POSIX and STDIO are summed: MPI-IO and HDF5 count the same bytes again."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable

import msgspec

from tarazu.errors import TraceError
from tarazu.model import ANY_RANK, JobStep
from tarazu.trace.darshan.log import DarshanLog
from tarazu.trace.darshan.read import read
from tarazu.trace.own_phases import kept
from tarazu.trace.parser import dropped_name
from tarazu.trace.phases.darshan import phases
from tarazu.trace.phases.phase import Phase
from tarazu.trace.places import linked_names
from tarazu.trace.records import NOT_KNOWN_S, FileRecord, RunRecord
from tarazu.units import numeric_arguments

Template = Callable[[str, str, int], tuple[str, str]]
"""(key, job id, rank) → (precise template, loose template)."""


class _Sum(msgspec.Struct):
    """One file over modules and records."""

    ranks: set[int]
    size_bytes: int = 0
    written_bytes: int = 0
    opened_s: float = float("inf")
    closed_s: float = NOT_KNOWN_S


def import_log(
    path: str | os.PathLike[str],
    *,
    template: Template | None = None,
    fs_name: str = "",
    mount: str = "/",
    application: str = "",
) -> RunRecord:
    """The files below `mount` that the logged job wrote, as a RunRecord (mode full, source `darshan`).

    Sizes are the highest byte written + 1; creation is the first open; n counts each rank's files in order.
    `partial` is Darshan's own flag that records are missing. `template` is the C library's unless given.
    Raises TraceError for what is no Darshan log that can be read.
    """
    log = read(path)
    step = JobStep(
        fs_name=fs_name,
        uid=log.uid,
        application=application or log.application or "unknown",
        job_id=log.job_id,
        ranks=log.ranks,
        numbers=numeric_arguments(log.command[1:]),
        start_s=log.start_s,
    )
    root = mount.rstrip("/")
    linked = linked_names(log)

    def key_of(name: str) -> str | None:
        paths = (name, linked.get(name, ""))
        return next((path[len(root) :] for path in paths if path.startswith(f"{root}/")), None)

    return run_of(log, step, key_of, template=template)


def run_of(
    log: DarshanLog, step: JobStep, key_of: Callable[[str], str | None], *, template: Template | None = None
) -> RunRecord:
    """The written files of a log to whose names `key_of` gives a key, as the run of `step`."""
    return RunRecord(
        step=step,
        start_s=log.start_s,
        duration_s=log.run_time_s,
        mode="full",
        files=_files(_written(log, key_of), step, template or _native_template),
        ranks_seen=step.ranks,
        ranks_expected=step.ranks,
        processes=step.ranks,
        partial=log.partial,
        source="darshan",
        phases=_phases(log, key_of),
    )


def _phases(log: DarshanLog, key_of: Callable[[str], str | None]) -> tuple[Phase, ...]:
    """None where modules that nothing else here needs cannot be read: the run is worth having without."""
    try:
        return kept(phases(log, wanted=lambda name: key_of(name) is not None))
    except TraceError:
        return ()


def _written(log: DarshanLog, key_of: Callable[[str], str | None]) -> dict[str, _Sum]:
    """Written files by key. A record without written bytes still shows who opened the file."""
    keys = {record: key_of(name) for record, name in log.names.items() if name.startswith("/")}
    sums: defaultdict[str, _Sum] = defaultdict(lambda: _Sum(set()))
    columns = ("record", "rank", "written_bytes", "written_end_bytes", "open_start_s", "close_end_s")
    for record, rank, written, end, opened_s, closed_s in log.accesses[list(columns)].tolist():
        key = keys.get(record)
        if key is None or dropped_name(key):
            continue
        of = sums[key]
        if written > 0 or rank == ANY_RANK:
            of.ranks.add(rank)
        of.written_bytes += written
        of.size_bytes = max(of.size_bytes, end)
        of.opened_s = min(of.opened_s, max(opened_s, 0.0))
        of.closed_s = max(of.closed_s, closed_s if closed_s > 0 else NOT_KNOWN_S)
    return {key: s for key, s in sums.items() if s.size_bytes > 0}


def _files(sums: dict[str, _Sum], step: JobStep, template: Template) -> tuple[FileRecord, ...]:
    """Number the files of each rank by template in the order of their first open.

    The process of a log of one is most often none of MPI's: the recorder gives its files no rank.
    """
    counts: defaultdict[tuple[str, int], int] = defaultdict(int)
    everyone = tuple(range(step.ranks)) if step.ranks > 1 else ()
    files = []
    for key, of in sorted(sums.items(), key=lambda item: (item[1].opened_s, item[0])):
        shared = ANY_RANK in of.ranks or len(of.ranks) > 1
        rank = ANY_RANK if shared or not everyone else min(of.ranks)
        precise, loose = template(key, step.job_id, rank)
        numbers = []
        for name in ("P" + precise, "L" + loose):
            numbers.append(counts[name, rank])
            counts[name, rank] += 1
        creators = everyone if ANY_RANK in of.ranks or not everyone else tuple(sorted(of.ranks))
        files.append(
            FileRecord(
                key=key,
                precise=precise,
                loose=loose,
                rank=rank,
                creators=creators,
                nth_precise=numbers[0],
                nth_loose=numbers[1],
                at_s=of.opened_s,
                size_bytes=of.size_bytes,
                written_bytes=of.written_bytes,
                writers=max(len(creators), 1),
                counted=True,
                until_s=of.closed_s if of.closed_s >= of.opened_s else NOT_KNOWN_S,
            )
        )
    return tuple(files)


def _native_template(key: str, job_id: str, rank: int) -> tuple[str, str]:
    from tarazu.native import template

    names = template(key, job_id=job_id, rank=rank)
    return names.precise, names.loose
