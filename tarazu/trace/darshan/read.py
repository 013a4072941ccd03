"""Darshan log → `DarshanLog`."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.errors import TraceError
from tarazu.trace.darshan.gaps import find_gaps
from tarazu.trace.darshan.layouts import logged_layouts
from tarazu.trace.darshan.log import ACCESS, SEGMENT, DarshanLog, Heat, Module
from tarazu.trace.darshan.records import OpenLog, open_log

TABLES = ("POSIX", "STDIO", "MPI-IO")
ACCESSES = ("POSIX", "STDIO")
LIBRARIES = ("H5D", "PNETCDF_VAR")
MOST_RANKS = 2**31


def read(path: str | os.PathLike[str]) -> DarshanLog:
    """All of a log but its trace, which `segments` reads.

    Raises TraceError for a file that is no Darshan log or a damaged one.
    """
    with open_log(os.fspath(path)) as opened:
        modules = {name: opened.table(name) for name in TABLES if name in opened.modules}
        layouts, odd = logged_layouts(opened.components() if "LUSTRE" in opened.modules else ())
        log = DarshanLog(
            path=opened.where,
            version=opened.version,
            mounts=opened.mounts(),
            names=opened.names(),
            present={name: of.partial for name, of in opened.modules.items()},
            modules=modules,
            accesses=np.concatenate(
                [np.zeros(0, ACCESS), *(_accesses(modules[name]) for name in ACCESSES if name in modules)]
            ),
            layouts=layouts,
            gaps=(),
            **_job(opened),
        )
    _check(log)
    return msgspec.structs.replace(log, gaps=find_gaps(log, odd))


def library_tables(log: DarshanLog) -> dict[str, Module]:
    """What the log has of LIBRARIES, which count again what they move through MPI-IO and POSIX. Raises as `read`."""
    names = [name for name in LIBRARIES if name in log.present]
    if not names:
        return {}
    with open_log(log.path) as opened:
        return {name: opened.table(name) for name in names}


def heat(log: DarshanLog) -> list[Heat]:
    """The bytes of each rank and interface by slices of time; empty where the log has no HEATMAP. Raises as `read`."""
    if "HEATMAP" not in log.present:
        return []
    modules = {f"heatmap:{name.replace('-', '')}": name for name in TABLES}
    with open_log(log.path) as opened:
        return [
            Heat(module, rank, width_s, written, moved)
            for record, rank, width_s, written, moved in opened.heat()
            if (module := modules.get(log.names.get(record, ""))) and width_s > 0
        ]


def segments(log: DarshanLog, module: str = "DXT_POSIX") -> NDArray[np.void]:
    """The trace of a log (DXT_POSIX or DXT_MPIIO), of dtype SEGMENT, by rank and time; empty without one."""
    if module not in log.present:
        return np.zeros(0, SEGMENT)
    with open_log(log.path) as opened:
        calls = opened.segments(module)
    order: NDArray[np.intp] = np.lexsort((calls["end_s"], calls["start_s"], calls["rank"]))
    return calls[order]


def _job(opened: OpenLog) -> dict[str, Any]:
    """The fields of Log that are of the job."""
    job = opened.job()
    # Formats before 3.41 have whole seconds: a job from second 3 to second 3 ran for up to one.
    whole = 0 if tuple(map(int, opened.version.split("."))) >= (3, 41) else 1
    run_time_s = job.end_s - job.start_s + whole + (job.end_ns - job.start_ns) / 1e9
    return {
        "ranks": job.ranks,
        "uid": job.uid,
        "job_id": str(job.job_id),
        "command": tuple(opened.command().split()),
        "start_s": job.start_s + job.start_ns / 1e9,
        "run_time_s": run_time_s if job.end_s > 0 and run_time_s > 0 else 0.0,
    }


def _check(log: DarshanLog) -> None:
    """Raises TraceError for what no run can have done: the regions may be whole, and what is in them may not."""
    for name in log.accesses.dtype.names or ():
        values = log.accesses[name]
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            found = values[~np.isfinite(values)][0].item()
            raise TraceError(log.path, f"a finite number for {name} of each file", found)
    ranks = log.accesses["rank"]
    if len(ranks) and ranks.max() >= MOST_RANKS:
        raise TraceError(log.path, f"ranks below {MOST_RANKS}", ranks.max().item())


def _accesses(module: Module) -> NDArray[np.void]:
    """POSIX and STDIO name what is common to them alike."""
    rows = np.zeros(len(module), ACCESS)
    rows["record"], rows["rank"] = module.records, module.ranks
    rows["stdio"] = module.name == "STDIO"
    counters = {
        "opens": "OPENS",
        "reads": "READS",
        "writes": "WRITES",
        "read_bytes": "BYTES_READ",
        "written_bytes": "BYTES_WRITTEN",
        "mmaps": "MMAPS",
    }
    for column, counter in counters.items():
        rows[column] = np.maximum(module.counters.get(f"{module.name}_{counter}", np.int64(0)), 0)
    for column, moved, highest in (
        ("read_end_bytes", "read_bytes", "MAX_BYTE_READ"),
        ("written_end_bytes", "written_bytes", "MAX_BYTE_WRITTEN"),
    ):
        rows[column] = np.where(rows[moved] > 0, module.counters[f"{module.name}_{highest}"] + 1, 0)
    times = {
        "read_s": "READ_TIME",
        "write_s": "WRITE_TIME",
        "meta_s": "META_TIME",
        "open_start_s": "OPEN_START_TIMESTAMP",
        "read_start_s": "READ_START_TIMESTAMP",
        "read_end_s": "READ_END_TIMESTAMP",
        "write_start_s": "WRITE_START_TIMESTAMP",
        "write_end_s": "WRITE_END_TIMESTAMP",
        "close_end_s": "CLOSE_END_TIMESTAMP",
    }
    for column, counter in times.items():
        rows[column] = module.fcounters[f"{module.name}_F_{counter}"]
    return rows
