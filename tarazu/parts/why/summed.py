"""A remembered run summed up, to be compared with others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tarazu.errors import TraceError
from tarazu.parts.why.facts import Run
from tarazu.store.placed import ost_bytes, whole
from tarazu.trace.history import History
from tarazu.trace.phases.phase import Phase
from tarazu.trace.records import RunRecord
from tarazu.trace.runfile import MAX_RUN_BYTES, read_header, read_run, reader

MOST_READ = 40
"""Earlier runs that are looked at."""
MOST_ROWS = 2_000
"""Files of an earlier run that are read where its header does not say on which OSTs they lie."""


def summary(run: RunRecord, id: str, files: int = 0) -> Run:
    """What it did; what nobody recorded is as `Run` says. `files`: how many, where only its header was read."""
    shared = max((file for file in run.files if file.shared), key=lambda file: file.size_bytes, default=None)
    laid = run.ost_bytes
    if not laid:
        placed, _ = ost_bytes(run.files)
        laid = whole(placed, sum(file.size_bytes for file in run.files))
    phases = run.phases
    counted = all(phase.requests for phase in phases)
    return Run(
        id=id,
        start_s=run.start_s,
        io_s=io_s(phases),
        bytes=float(sum(phase.bytes for phase in phases)),
        files=files or len(run.files),
        ranks=max(run.step.ranks, run.ranks_seen, 1),
        job_id=run.step.job_id,
        calls=float(sum(phase.requests for phase in phases)) if counted else 0.0,
        largest_shared_bytes=float(shared.size_bytes) if shared else 0.0,
        usable_osts=run.system.usable_osts if run.system else 0,
        ost_bytes={ost: float(size) for ost, size in laid.items() if size},
        system=run.system,
    )


def before(history: History, fs_name: str, application: str, path: Path) -> list[Run]:
    """The application's runs before that one, the oldest first, of those that can be read."""
    earlier = [each for each in history.paths(fs_name, application) if each.name < path.name]
    found = []
    for each in earlier[-MOST_READ:]:
        try:
            with reader(each, MAX_RUN_BYTES) as file:
                header = read_header(file, str(each))
                run = header.run(str(each))
            if not run.ost_bytes and header.files <= MOST_ROWS:
                run = read_run(each)
        except (OSError, TraceError):
            continue
        found.append(summary(run, each.stem, header.files))
    return found


def io_s(phases: Sequence[Phase]) -> float:
    """Seconds of I/O; phases that overlap take no longer than they last together."""
    seconds = sums = 0.0
    begin = end = float("-inf")
    for phase in sorted(phases, key=lambda phase: phase.start_s):
        if phase.start_s > end:
            seconds += min(sums, end - begin) if end > begin else 0.0
            begin, end, sums = phase.start_s, phase.end_s, 0.0
        end = max(end, phase.end_s)
        sums += phase.io_s
    return seconds + (min(sums, end - begin) if end > begin else 0.0)
