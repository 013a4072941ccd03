"""What a run created: files folded by template (a thousand files are a few lines), and their bytes on each OST."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from tarazu import native, ranges
from tarazu.errors import LayoutError
from tarazu.layout.objects import component_object_bytes
from tarazu.model import ANY_RANK
from tarazu.trace.records import OUTCOMES, FileRecord, RunRecord

KNOWN_SHARE = 0.5
"""Of the bytes, from which those whose OSTs are known stand for all."""


class FileGroup(msgspec.Struct, frozen=True):
    """Files of one loose template."""

    name: str
    """The name of a single file; else the precise template where all have one, else the loose one."""
    files: int
    least_bytes: int
    most_bytes: int
    size_bytes: int
    """All together."""
    ranks: str
    """Folded; `any` for files that several ranks share or that have none."""
    first_s: float
    """Creation, seconds after the start of the run."""
    last_s: float
    outcomes: dict[str, int]
    unclosed: int
    """Files of unknown size: no process closed them."""


def file_groups(run: RunRecord) -> list[FileGroup]:
    """In order of their first file."""
    of: dict[str, list[FileRecord]] = {}
    for file in run.files:
        of.setdefault(file.loose, []).append(file)
    return [_group(files) for files in of.values()]


def _name(of: Sequence[FileRecord]) -> str:
    if len(of) == 1:
        return of[0].key
    return of[0].precise if len({each.precise for each in of}) == 1 else of[0].loose


def _ranks(of: Sequence[FileRecord]) -> str:
    ranks = sorted({each.rank for each in of})
    return "any" if ANY_RANK in ranks else ranges.fold(ranks)


def _group(files: list[FileRecord]) -> FileGroup:
    counts = Counter(file.outcome for file in files)
    return FileGroup(
        name=_name(files),
        files=len(files),
        least_bytes=min(file.size_bytes for file in files),
        most_bytes=max(file.size_bytes for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        ranks=_ranks(files),
        first_s=min(file.at_s for file in files),
        last_s=max(file.at_s for file in files),
        outcomes={outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]},
        unclosed=sum(not file.closed for file in files),
    )


def ost_bytes(files: Iterable[FileRecord]) -> tuple[dict[int, int], int]:
    """(OST index → bytes, how many of the files have a layout that says so), by layouts read back after placing."""
    placed: Counter[int] = Counter()
    known = 0
    decoded: dict[bytes, native.Decoded] = {}
    for file in files:
        if not file.layout:
            continue
        try:
            if file.layout not in decoded:
                decoded[file.layout] = native.decode_lov(file.layout)
        except LayoutError:
            continue
        layout = decoded[file.layout]
        if layout.odd:
            continue
        known += 1
        for entry in layout.components:
            if not entry.osts:
                continue  # on the MDT, or not begun: it may have no stripe size either
            sizes = component_object_bytes(entry.component, file.size_bytes)
            for ost, size in zip(entry.osts, sizes, strict=False):  # one that is overstriped comes twice
                placed[ost] += size
    return dict(sorted(placed.items())), known


def whole(known: dict[int, int], size_bytes: int) -> dict[int, int]:
    """Bytes by OST of all files, from those of files whose OSTs are known; empty where they are too few."""
    total = sum(known.values())
    if not total or total < KNOWN_SHARE * size_bytes:
        return {}
    return {ost: round(of * max(size_bytes, total) / total) for ost, of in sorted(known.items())}
