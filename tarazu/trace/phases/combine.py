"""Parts of the same file, then phases that are alike and close in time, become one phase (paper E, appendix A)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TypeVar

import msgspec

from tarazu.model import ANY_RANK
from tarazu.trace.phases.phase import (
    THRESHOLD,
    Phase,
    PhasePart,
    Sharing,
    Spatiality,
    io_s,
    order,
    spatiality,
)

DISTANCE_S = 1.0
"""Phases that are alike and not further apart are one."""
MOST_SIZES = 16
"""Sizes of requests that a phase keeps, the most frequent ones."""

_Parts = list[PhasePart]
_START = attrgetter("start_s", "end_s", "rank")


class _OfFile(msgspec.Struct):
    """What step 2 leaves: the parts of a file, in order of their start."""

    parts: _Parts
    spatiality: Spatiality
    sharing: Sharing
    start_s: float
    end_s: float


Timed = TypeVar("Timed", PhasePart, _OfFile)


def combine(
    parts: Iterable[PhasePart],
    ranks: int,
    threshold: float = THRESHOLD,
    distance_s: float = DISTANCE_S,
) -> tuple[Phase, ...]:
    """Phases in order of their start, of a run with so many ranks (steps 2 and 3)."""
    alike: dict[tuple[str, str, str, str], list[_OfFile]] = {}
    for of in _by_file(parts, threshold, distance_s):
        one = of.parts[0]
        alike.setdefault((one.api, one.operation, of.spatiality, of.sharing), []).append(of)
    phases = []
    for files in alike.values():
        files.sort(key=lambda of: (of.start_s, of.end_s))
        for together in _near(files, distance_s):
            merged = sorted((part for of in together for part in of.parts), key=_START)
            phases.append(_phase(merged, together[0].spatiality, together[0].sharing, ranks))
    return tuple(
        sorted(phases, key=lambda p: (p.start_s, p.end_s, p.operation, p.api, p.spatiality, p.sharing))
    )


def _by_file(parts: Iterable[PhasePart], threshold: float, distance_s: float) -> Iterator[_OfFile]:
    """Step 2: all ranks of a (file, API, operation) together, but where their own times show a pause."""
    files: dict[tuple[int | str, str, str], _Parts] = {}
    for part in parts:
        files.setdefault((part.file, part.api, part.operation), []).append(part)
    for of_file in files.values():
        of_file.sort(key=_START)
        several = {part.rank for part in of_file}
        shared = len(several) > 1 or any(part.rank == ANY_RANK and part.ranks > 1 for part in of_file)
        sharing: Sharing = "shared" if shared else "unique"
        groups = _near(of_file, distance_s) if all(part.timed for part in of_file) else [of_file]
        for group in groups:
            yield _OfFile(
                group,
                spatiality(order(group), threshold),
                sharing,
                group[0].start_s,
                max(part.end_s for part in group),
            )


def _near(found: Sequence[Timed], distance_s: float) -> Iterator[list[Timed]]:
    """Runs of what starts at most so long after all before it ended; in order of start."""
    group: list[Timed] = []
    end = float("-inf")
    for one in found:
        if group and one.start_s > end + distance_s:
            yield group
            group = []
        group.append(one)
        end = max(end, one.end_s)
    if group:
        yield group


def _phase(parts: _Parts, kind: Spatiality, sharing: Sharing, run_ranks: int) -> Phase:
    everyone = any(part.rank == ANY_RANK for part in parts)
    ranks = {part.rank for part in parts if part.rank != ANY_RANK}
    of_file: dict[int | str, set[int]] = {}
    most: dict[int | str, int] = {}
    sizes: Counter[int] = Counter()
    for part in parts:
        of_file.setdefault(part.file, set()).add(part.rank)
        if part.rank == ANY_RANK:
            most[part.file] = part.ranks
        for size, number in part.sizes:
            sizes[size] += number
    each = Counter(most.get(file, len(of)) for file, of in of_file.items())
    # Of numbers that are as frequent, the largest: it is the one that loads the file system.
    processes = max(each.items(), key=lambda item: (item[1], item[0]))[0]
    frequent = sorted(sizes.items(), key=lambda item: (-item[1], -item[0]))[:MOST_SIZES]
    known = None if everyone else tuple(sorted(ranks))
    return Phase(
        start_s=parts[0].start_s,
        end_s=max(part.end_s for part in parts),
        operation=parts[0].operation,
        ranks=known,
        rank_count=run_ranks if known is None else len(known),
        bytes=sum(part.bytes for part in parts),
        io_s=io_s(parts),
        api=parts[0].api,
        requests=sum(part.requests for part in parts),
        spatiality=kind,
        sharing=sharing,
        files=len(of_file),
        processes_per_file=processes,
        request_sizes=tuple(frequent),
    )
