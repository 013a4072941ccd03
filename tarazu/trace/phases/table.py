"""Phases as rows: the columns of the paper's tables (paper E, tables 2, 5 and 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tarazu import ranges
from tarazu.trace.phases.phase import Phase

COLUMNS = (
    "job",
    "start",
    "end",
    "type",
    "rank(s)",
    "bytes",
    "time",
    "api",
    "#requests",
    "spatiality",
    "files",
    "#files",
    "mode of #processes",
)
"""Seconds after the start of the run; `time` is the parallel I/O time; `files`: shared or unique."""
UNKNOWN = "unknown"


def rows(job: str, phases: Iterable[Phase], run_ranks: int) -> Iterator[tuple[object, ...]]:
    """A row for each phase, as COLUMNS says."""
    for phase in phases:
        yield (
            job,
            f"{phase.start_s:.6f}",
            f"{phase.end_s:.6f}",
            phase.operation,
            _ranks(phase, run_ranks),
            phase.bytes,
            f"{phase.io_s:.6f}" if phase.io_s else UNKNOWN,
            phase.api,
            phase.requests or UNKNOWN,
            phase.spatiality,
            phase.sharing,
            phase.files,
            phase.processes_per_file,
        )


def _ranks(phase: Phase, run_ranks: int) -> str:
    """`all`, the rank if it was one, else how many they were."""
    if phase.rank_count >= run_ranks > 1:
        return "all"
    if phase.ranks is not None and len(phase.ranks) == 1:
        return ranges.fold(phase.ranks)
    return str(phase.rank_count)
