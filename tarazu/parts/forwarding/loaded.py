"""Phases of a file, whatever of ours or Darshan's it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tarazu.errors import TraceError
from tarazu.trace import own_phases as own
from tarazu.trace.phases.combine import DISTANCE_S
from tarazu.trace.phases.phase import THRESHOLD, Phase
from tarazu.trace.runfile import read_run
from tarazu.trace.spool import MAGIC, NODE_MAGIC, read_spools

if TYPE_CHECKING:
    from tarazu.trace.phases.darshan import Choice

_NOTED = ("partial", "unended", "mmap")
"""Gaps of a Darshan log that say what its phases may lack."""


class Loaded(msgspec.Struct, frozen=True):
    """The phases of one run."""

    path: str
    job: str
    """Application, and the id of the job where there is one."""
    ranks: int
    nodes: int
    """0: not known."""
    duration_s: float
    phases: tuple[Phase, ...]
    notes: tuple[str, ...] = ()
    """What they may lack, for people."""


def load(
    path: str | os.PathLike[str],
    *,
    threshold: float = THRESHOLD,
    distance_s: float = DISTANCE_S,
    api: Choice = "top",
    under: str = "",
) -> Loaded:
    """Phases of a Darshan log, of a run of the history, or of a spool. Raises TraceError.

    A run of the history has its phases as they were found with the defaults, and of POSIX alone.
    """
    where = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise TraceError(where, "a Darshan log, a run or a spool", error.strerror or str(error)) from None
    if head in (MAGIC, NODE_MAGIC):
        return _spool(where, threshold, distance_s)
    if head[:1] == b"{":
        return _run(where, threshold, distance_s)
    return _darshan(where, threshold, distance_s, api, under)


def _darshan(where: str, threshold: float, distance_s: float, api: Choice, under: str) -> Loaded:
    from tarazu.trace.darshan.read import read
    from tarazu.trace.phases.darshan import phases
    from tarazu.trace.places import linked_names

    log = read(where)
    below, linked = f"{under.rstrip('/')}/", linked_names(log)

    def wanted(name: str) -> bool:
        return name.startswith(below) or linked.get(name, "").startswith(below)

    logged = phases(log, threshold, distance_s, api=api, wanted=wanted if under else None)
    notes = [gap.text for gap in log.gaps if gap.kind in _NOTED or (gap.kind == "no-bytes" and not logged)]
    return Loaded(
        where, _job(log.application, log.job_id), log.ranks, 0, log.run_time_s, logged, tuple(notes)
    )


def _run(where: str, threshold: float, distance_s: float) -> Loaded:
    run = read_run(where)
    notes = [] if run.source == "darshan" else ["recorded: writes only, and times from opening to closing"]
    if not run.phases and run.files:
        notes = ["no phases were kept with it: only when its files were created is known"]
    if not run.complete:
        notes.append("files may be missing")
    return Loaded(
        where,
        _job(run.step.application, run.step.job_id),
        run.step.ranks,
        run.step.nodes,
        run.duration_s,
        own.phases(run, threshold, distance_s),
        tuple(notes),
    )


def _spool(where: str, threshold: float, distance_s: float) -> Loaded:
    spools = read_spools(where)
    started = [spool.header.start_ns for spool in spools if spool.header.start_ns]
    start_s = min(started, default=0) / 1e9
    ranks = max((spool.header.ranks for spool in spools), default=0) or len(spools)
    by_file_system = own.of_spools(spools, start_s, ranks, threshold, distance_s)
    last_s = max((spool.last_ns for spool in spools), default=0) / 1e9
    together = tuple(
        sorted((p for of in by_file_system.values() for p in of), key=lambda phase: phase.start_s)
    )
    header = spools[0].header if spools else None
    job = _job(header.program, header.job_id) if header else ""
    notes = ("recorded: writes only, and times from opening to closing",)
    return Loaded(where, job, ranks, 0, max(last_s - start_s, 0.0), together, notes)


def _job(application: str, job_id: str) -> str:
    return f"{application or '?'}-{job_id}" if job_id else application or "?"
