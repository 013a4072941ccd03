"""I/O phases of a recorded run: of what its processes wrote, from opening to closing each file.

The recorder counts no reads, and takes no times of single calls: `io_s` is the time that files were open, and no less.
That requests ascend with gaps it cannot tell from random ones: both are `unknown`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from tarazu.model import ANY_RANK
from tarazu.trace.phases.combine import DISTANCE_S, combine
from tarazu.trace.phases.phase import THRESHOLD, Phase, PhasePart
from tarazu.trace.records import RunRecord
from tarazu.trace.spool import CloseRecord, Spool

MOST_KEPT = 200
"""Phases that are kept with a run, those of the most bytes."""
_MOST_RANKS = 16
"""Ranks that are kept by name."""


def phases(run: RunRecord, threshold: float = THRESHOLD, distance_s: float = DISTANCE_S) -> tuple[Phase, ...]:
    """Those that were kept with the run; of a run of before, phases as long as nothing, at its files' creation."""
    if run.phases:
        return run.phases
    ranks = max(run.step.ranks, 1)
    parts = []
    for file in run.files:
        size = file.written_bytes if file.counted else file.size_bytes
        who = file.creators if 1 < len(file.creators) == file.writers else ()
        for number, rank in enumerate(who or (max(file.rank, 0),)):
            everyone = not who and file.rank == ANY_RANK and 1 < file.writers >= ranks > 1
            share = (number + 1) * size // max(len(who), 1) - number * size // max(len(who), 1)
            if share:
                parts.append(
                    _part(
                        file.key,
                        ANY_RANK if everyone else rank,
                        ranks if everyone else 1,
                        share,
                        file.at_s,
                        file.at_s,
                    )
                )
    return combine(parts, ranks, threshold, distance_s)


def of_spools(
    spools: Sequence[Spool],
    start_s: float,
    ranks: int,
    threshold: float = THRESHOLD,
    distance_s: float = DISTANCE_S,
) -> dict[str, tuple[Phase, ...]]:
    """Phases of a run that began at this Unix time, by file system; `spools`: each process once."""
    closes: defaultdict[tuple[str, str], list[tuple[int, CloseRecord]]] = defaultdict(list)
    for process, spool in enumerate(spools):
        # Processes without a rank are told apart all the same.
        rank = spool.header.rank if spool.header.rank >= 0 else process
        for close in spool.closes:
            if close.time_ns:
                closes[close.fs_name, close.key].append((rank, close))
    parts: defaultdict[str, list[PhasePart]] = defaultdict(list)
    for (fs_name, key), its_closes in closes.items():
        # What was not counted is the size in the end, of whoever had it open for writing.
        counted = all(close.counted for _, close in its_closes)
        size = max(close.size_bytes for _, close in its_closes)
        for number, (rank, close) in enumerate(its_closes):
            share = (number + 1) * size // len(its_closes) - number * size // len(its_closes)
            moved = close.written_bytes if counted else share
            if moved <= 0:
                continue
            first = max(close.opened_ns / 1e9 - start_s, 0.0) if close.opened_ns else 0.0
            last = max(close.time_ns / 1e9 - start_s, first)
            parts[fs_name].append(_part(key, rank, 1, moved, first, last, close if counted else None))
    return {fs_name: combine(of, ranks, threshold, distance_s) for fs_name, of in parts.items()}


def kept(found: Iterable[Phase]) -> tuple[Phase, ...]:
    """What is kept with a run: not more than a header holds, and of many ranks their number alone."""
    most = sorted(found, key=lambda phase: -phase.bytes)[:MOST_KEPT]
    return tuple(
        msgspec.structs.replace(phase, ranks=None)
        if phase.ranks is not None and len(phase.ranks) > _MOST_RANKS
        else phase
        for phase in sorted(most, key=lambda phase: phase.start_s)
    )


def _part(
    key: str,
    rank: int,
    ranks: int,
    moved: int,
    start_s: float,
    end_s: float,
    close: CloseRecord | None = None,
) -> PhasePart:
    return PhasePart(
        file=key,
        api="POSIX",
        operation="write",
        rank=rank,
        ranks=ranks,
        start_s=start_s,
        end_s=end_s,
        bytes=moved,
        io_s=end_s - start_s,
        requests=close.writes if close else 0,
        consecutive=max(close.writes - close.segments, 0) if close else -1,
        sequential=-1,
    )
