"""The parser (paper, section 5.4): spools of all processes of a run become one RunRecord for each file system."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import msgspec

from tarazu.errors import TraceError
from tarazu.model import ANY_RANK, JobStep
from tarazu.trace import own_phases as own
from tarazu.trace.records import FOUND, NOT_KNOWN_S, OUTCOMES, FileRecord, RunRecord
from tarazu.trace.spool import CloseRecord, CreateRecord, Spool, read_spools

_LOCKTEST = re.compile(r"\.locktest\.\d+$")


def dropped_name(key: str) -> bool:
    """True for the empty files that OMPIO creates beside the data, `<file>.locktest.<n>`."""
    return _LOCKTEST.search(key) is not None


class _KeyRecords(msgspec.Struct):
    """Everything that was recorded of one key; each record with the number of its process."""

    creates: list[tuple[int, CreateRecord]]
    closes: list[tuple[int, CloseRecord]]


def parse_files(
    paths: Iterable[str | os.PathLike[str]],
    step: JobStep,
    *,
    exit_status: int = 0,
    problem: Callable[[TraceError], None] | None = None,
) -> RunRecord:
    """Read spool files of this user's and parse them; a file that is no spool goes to `problem`, or is raised."""
    return parse_all_files(paths, step, exit_status=exit_status, problem=problem)[step.fs_name]


def parse_all_files(
    paths: Iterable[str | os.PathLike[str]],
    step: JobStep,
    *,
    exit_status: int = 0,
    problem: Callable[[TraceError], None] | None = None,
) -> dict[str, RunRecord]:
    """As `parse_files`, by file system as `parse_runs`."""
    spools: list[Spool] = []
    foreign = 0
    for path in paths:
        try:
            spools.extend(read_spools(path, own=True))
        except TraceError as error:
            if problem is None:
                raise
            problem(error)
            foreign += 1
    runs = parse_runs(spools, step, exit_status=exit_status)
    return {n: msgspec.structs.replace(r, lost_bytes=r.lost_bytes + foreign) for n, r in runs.items()}


def parse_runs(
    spools: Sequence[Spool], step: JobStep, *, exit_status: int = 0, with_phases: bool = True
) -> dict[str, RunRecord]:
    """One RunRecord for each file system on which the run created something, and for `step.fs_name` in any case.

    Each has its own file system in its step; what is known of the processes is the same in all. The start of
    the run is `step.start_s` where that is known, else the first process's start. Ranks expected are the step's, or
    what the processes themselves were told where that is more.
    """
    spools = _distinct(spools)
    timed = [s for s in spools if s.header.start_ns]
    first_s = min((s.header.start_ns for s in timed), default=0) / 1e9
    start_s = step.start_s if 0 < step.start_s <= first_s or not timed else first_s
    last_s = max((s.last_ns for s in spools), default=0) / 1e9
    seen: defaultdict[tuple[str, str], _KeyRecords] = defaultdict(lambda: _KeyRecords([], []))
    for process, spool in enumerate(spools):
        for create in spool.creates:
            if not dropped_name(create.key):
                seen[create.fs_name, create.key].creates.append((process, create))
        for close in spool.closes:
            if close.time_ns:  # else it was opened again, and never closed
                seen[close.fs_name, close.key].closes.append((process, close))
    ranks = [s.header.rank for s in spools]
    files: dict[str, list[FileRecord]] = {step.fs_name: []}
    for (fs_name, key), of in seen.items():
        if of.creates:
            files.setdefault(fs_name, []).append(_file(key, of, ranks, start_s))
    # A program without ranks has rank -1 in every process: there is nothing to count as missing.
    seen_ranks = len({r for r in ranks if r >= 0})
    told = max((s.header.ranks for s in spools), default=0)
    run = RunRecord(
        step=step,
        start_s=start_s,
        duration_s=max(last_s - start_s, 0.0),
        mode="full" if spools and all(s.header.full for s in spools) else "light",
        files=(),
        ranks_seen=seen_ranks or min(len(spools), 1),
        ranks_expected=max(step.ranks, told) if seen_ranks or not spools else 1,
        processes=sum(s.header.pid != 0 for s in spools),
        unended=sum(not s.ended and s.header.pid != 0 for s in spools),
        dropped_records=sum(s.header.dropped_records for s in spools),
        lost_bytes=sum(s.lost_bytes for s in spools),
        partial=any(s.header.passed_over for s in spools),
        passed_over=sum(s.header.passed_over for s in spools),
        exit_status=exit_status,
    )
    io = own.of_spools(spools, start_s, run.ranks_expected) if with_phases else {}
    return {
        fs_name: msgspec.structs.replace(
            run,
            phases=own.kept(io.get(fs_name, ())),
            step=msgspec.structs.replace(step, fs_name=fs_name),
            files=tuple(sorted(of, key=lambda f: (f.at_s, f.key))),
        )
        for fs_name, of in files.items()
    }


def _distinct(spools: Sequence[Spool]) -> list[Spool]:
    """Each process once: one that was killed while its spool was handed over may be there twice, once in part."""
    best: dict[tuple[object, ...], Spool] = {}
    for spool in spools:
        h = spool.header
        key = (h.host, h.pid, h.start_ns, h.rank)
        if key not in best or spool.lost_bytes < best[key].lost_bytes:
            best[key] = spool
    return list(best.values())


def _file(key: str, seen: _KeyRecords, ranks: Sequence[int], start_s: float) -> FileRecord:
    """Sum up one created file over its processes."""
    process, creator = _creator(seen.creates)
    creators = tuple(sorted({ranks[p] for p, _ in seen.creates if ranks[p] >= 0}))
    closes = sorted(seen.closes, key=lambda c: c[1].time_ns)
    counted = bool(closes) and all(c.counted for _, c in closes)
    writing = {p for p, c in closes if c.written_bytes or not counted}
    last_sizes = {p: c.size_bytes for p, c in closes}
    shared = len(creators) > 1 or len({ranks[p] for p in writing} | {ranks[process]}) > 1
    known = any(c.shared for _, c in seen.creates)  # though not all of them are seen: one without the library
    named = _usual_name([c for _, c in seen.creates], creator) if shared else creator
    first_ns = min(c.time_ns for _, c in seen.creates)
    return FileRecord(
        key=key,
        precise=named.precise,
        loose=named.loose,
        rank=ANY_RANK if shared else ranks[process],
        creators=creators,
        nth_precise=named.nth_precise,
        nth_loose=named.nth_loose,
        at_s=max(first_ns / 1e9 - start_s, 0.0),
        size_bytes=max(last_sizes.values(), default=0),
        written_bytes=sum(c.written_bytes for _, c in closes) if counted else 0,
        writers=max(len(writing), 1 + known),
        contiguous=counted and _contiguous(closes),
        counted=counted,
        closed=bool(closes),
        until_s=max(closes[-1][1].time_ns / 1e9 - start_s, 0.0) if closes else NOT_KNOWN_S,
        existed=all(c.existed for _, c in seen.creates),
        outcome=OUTCOMES[creator.outcome] if creator.outcome < len(OUTCOMES) else "unmanaged",
        found=FOUND[creator.found] if creator.found < len(FOUND) else "no",
        errno=creator.errno,
        row_id=creator.row_id,
        generation=creator.generation,
        layout=creator.layout,
    )


def _creator(creates: Sequence[tuple[int, CreateRecord]]) -> tuple[int, CreateRecord]:
    """The process that made the file as it is now: the last one that did not find it there already.

    A process whose placement lost the race (`raced`) did not make it either.
    """
    made = [c for c in creates if not c[1].existed and OUTCOMES[c[1].outcome % len(OUTCOMES)] != "raced"]
    if made:
        return max(made, key=lambda c: c[1].time_ns)
    return min(creates, key=lambda c: c[1].time_ns)


def _usual_name(creates: Sequence[CreateRecord], creator: CreateRecord) -> CreateRecord:
    """The create whose templates most processes agree on: one rank's number in a shared name is chance."""
    votes = Counter((c.precise, c.nth_precise, c.nth_loose) for c in creates)
    best = max(votes.items(), key=lambda v: (v[1], "{rank}" not in v[0][0], v[0][0] == creator.precise))[0]
    return next(c for c in creates if (c.precise, c.nth_precise, c.nth_loose) == best)


def _contiguous(closes: Sequence[tuple[int, CloseRecord]]) -> bool:
    """True when each process wrote one contiguous segment and no two of them overlap."""
    spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for process, close in closes:
        if close.written_bytes:
            if close.segments > 1:
                return False
            spans[process].append((close.lowest_bytes, close.end_bytes))
    merged = []
    for parts in spans.values():
        parts.sort()
        low, high = parts[0]
        for next_low, next_high in parts[1:]:
            if next_low > high:
                return False
            high = max(high, next_high)
        merged.append((low, high))
    merged.sort()
    return bool(merged) and all(a[1] <= b[0] for a, b in pairwise(merged))
