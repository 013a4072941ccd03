"""Imports a Darshan log as a run. POSIX and STDIO are summed: MPI-IO and HDF5 count the same bytes again."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import msgspec

from tarazu.errors import TraceError
from tarazu.model import ANY_RANK, JobStep
from tarazu.trace.arguments import numeric_arguments
from tarazu.trace.parser import dropped_name
from tarazu.trace.records import FileRecord, RunRecord

Template = Callable[[str, str, int], tuple[str, str]]
"""(key, job id, rank) → (precise template, loose template)."""

_MODULES = ("POSIX", "STDIO")


class _Sum(msgspec.Struct):
    """One file over modules and records."""

    ranks: set[int]
    size_bytes: int = 0
    written_bytes: int = 0
    opened_s: float = float("inf")


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
    Raises TraceError when PyDarshan is missing or cannot read the log.
    """
    where = os.fspath(path)
    if template is None:
        template = _native_template
    job, command, sums, partial = _read(where)
    arguments = command.split()
    program = PurePosixPath(arguments[0]).name if arguments else "unknown"
    start_s = _seconds(job, "start_time")
    step = JobStep(
        fs_name=fs_name,
        uid=int(job.get("uid", 0)),
        application=application or program,
        job_id=str(job.get("jobid", "")),
        ranks=int(job["nprocs"]),
        numbers=numeric_arguments(arguments[1:]),
        start_s=start_s,
    )
    root = mount.rstrip("/")
    managed = {n[len(root) :]: s for n, s in sums.items() if n.startswith(f"{root}/") and not dropped_name(n)}
    files = _files(managed, step, template)
    return RunRecord(
        step=step,
        start_s=start_s,
        duration_s=max(float(job.get("run_time", 0.0)), 0.0),
        mode="full",
        files=files,
        ranks_seen=step.ranks,
        ranks_expected=step.ranks,
        processes=step.ranks,
        partial=partial,
        source="darshan",
    )


def _read(where: str) -> tuple[dict[str, Any], str, dict[str, _Sum], bool]:
    """Job, command line, written files by name, partial flag."""
    try:
        import darshan
    except ImportError as error:
        raise TraceError(where, "PyDarshan to be installed (tarazu[sim])", str(error)) from None
    sums: defaultdict[str, _Sum] = defaultdict(lambda: _Sum(set()))
    partial = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = darshan.DarshanReport(where, read_all=False)
            for module in _MODULES:
                if module in report.modules:
                    partial |= bool(report.modules[module].get("partial_flag", False))
                    report.mod_read_all_records(module)
                    frames = report.records[module].to_df()
                    _add(sums, module, frames["counters"], frames["fcounters"], report.name_records)
            job, command = dict(report.metadata["job"]), str(report.metadata["exe"])
    except (RuntimeError, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise TraceError(where, "a Darshan log", str(error) or type(error).__name__) from None
    written = {name: s for name, s in sums.items() if name.startswith("/") and s.size_bytes > 0}
    return job, command, written, partial


def _add(sums: dict[str, _Sum], module: str, counters: Any, fcounters: Any, names: dict[int, str]) -> None:
    """Add the records of one module; a record without written bytes still shows who opened the file."""
    columns = zip(
        counters["id"].tolist(),
        counters["rank"].tolist(),
        counters[f"{module}_BYTES_WRITTEN"].tolist(),
        counters[f"{module}_MAX_BYTE_WRITTEN"].tolist(),
        fcounters[f"{module}_F_OPEN_START_TIMESTAMP"].tolist(),
    )
    for record, rank, written, highest, opened_s in columns:
        of = sums[names.get(int(record), "")]
        if written > 0 or rank == ANY_RANK:
            of.ranks.add(int(rank))
        if written > 0:
            of.written_bytes += int(written)
            of.size_bytes = max(of.size_bytes, int(highest) + 1)
        of.opened_s = min(of.opened_s, max(float(opened_s), 0.0))


def _files(sums: dict[str, _Sum], step: JobStep, template: Template) -> tuple[FileRecord, ...]:
    """Number the files of each rank by template in the order of their first open."""
    counts: defaultdict[tuple[str, int], int] = defaultdict(int)
    files = []
    for key, of in sorted(sums.items(), key=lambda item: (item[1].opened_s, item[0])):
        shared = ANY_RANK in of.ranks or len(of.ranks) > 1
        rank = ANY_RANK if shared else min(of.ranks)
        precise, loose = template(key, step.job_id, rank)
        numbers = []
        for name in ("P" + precise, "L" + loose):
            numbers.append(counts[name, rank])
            counts[name, rank] += 1
        creators = range(step.ranks) if ANY_RANK in of.ranks else sorted(of.ranks)
        files.append(
            FileRecord(
                key=key,
                precise=precise,
                loose=loose,
                rank=rank,
                creators=tuple(creators),
                nth_precise=numbers[0],
                nth_loose=numbers[1],
                at_s=of.opened_s,
                size_bytes=of.size_bytes,
                written_bytes=of.written_bytes,
                writers=len(creators),
                counted=True,
            )
        )
    return tuple(files)


def _seconds(job: dict[str, Any], name: str) -> float:
    """Darshan's `start_time_sec` and `_nsec`, or `start_time` of older logs."""
    if f"{name}_sec" in job:
        return float(job[f"{name}_sec"]) + float(job.get(f"{name}_nsec", 0)) / 1e9
    return float(job.get(name, 0.0))


def _native_template(key: str, job_id: str, rank: int) -> tuple[str, str]:
    from tarazu.native import template

    names = template(key, job_id=job_id, rank=rank)
    return names.precise, names.loose
