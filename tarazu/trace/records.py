"""What one run of a job step created: the parser's result and the predictor's input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import msgspec

from tarazu.model import JobStep

OUTCOMES = ("unmanaged", "hit", "late", "miss", "refused", "advised", "skipped", "raced", "partly")
"""Outcome of a create by its number in the spool (`docs/formats.md`, "Spool")."""

FOUND = ("no", "exact", "precise", "precise-any", "loose", "loose-any")
"""How the placement library found the row, by its number in the spool."""

VOLATILE_TOKENS = ("{job}", "{date}", "{pid}", "{host}")

Mode = Literal["full", "light"]


def is_volatile(precise: str) -> bool:
    """True when the exact name behind a precise template is not known before the run."""
    return any(token in precise for token in VOLATILE_TOKENS)


class FileRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file that a run created, summed up over all its processes."""

    key: str
    """Path below the mount; bytes that are no UTF-8 are surrogate escapes, as in `os.fsdecode`."""
    precise: str
    loose: str
    rank: int
    """Creating rank; ANY_RANK when several ranks created or wrote it, or when there are no ranks."""
    creators: tuple[int, ...]
    """Every rank that asked for its creation, sorted; empty for processes without a rank."""
    nth_precise: int
    nth_loose: int
    at_s: float
    """First creation, seconds after the start of the run."""
    size_bytes: int
    """Size at last close, maximum over processes."""
    written_bytes: int = 0
    """Bytes written, summed; 0 unless `counted`."""
    writers: int = 1
    """Processes that wrote it (`counted`), else that had it open for writing."""
    contiguous: bool = False
    """Each writer wrote one contiguous segment and none overlap; only ever true when `counted`."""
    counted: bool = False
    """Write counters are valid (recorder mode full)."""
    closed: bool = True
    """False when no process closed it: the size is unknown."""
    existed: bool = False
    """Every create found the file there already."""
    outcome: str = "unmanaged"
    """One of OUTCOMES: that of the process that really created it."""
    found: str = "no"
    """One of FOUND."""
    errno: int = 0
    """Of a refusal."""
    row_id: int = 0
    generation: int = 0
    layout: bytes = b""
    """`lustre.lov` as read back after placing; empty when nothing was placed."""

    @property
    def volatile(self) -> bool:
        return is_volatile(self.precise)

    @property
    def shared(self) -> bool:
        return self.writers > 1 or len(self.creators) > 1


class RunRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run of a job step: what was known before it, and the files that it created."""

    step: JobStep
    start_s: float
    """Unix time."""
    duration_s: float
    mode: Mode
    """`full` when every process recorded its writes."""
    files: tuple[FileRecord, ...]
    """In order of creation."""
    ranks_seen: int = 0
    ranks_expected: int = 0
    processes: int = 0
    unended: int = 0
    """Processes without an end record: killed, or ended by `_exit`."""
    dropped_records: int = 0
    """Records that the recorder had no space for."""
    lost_bytes: int = 0
    """Bytes of spools that were truncated or corrupt."""
    partial: bool = False
    """The source itself says that files are missing (Darshan's partial flag)."""
    exit_status: int = 0
    source: str = "recorder"

    @property
    def complete(self) -> bool:
        """No sign that files are missing or that the run failed."""
        lost = self.dropped_records or self.lost_bytes or self.partial or self.exit_status
        return not lost and self.ranks_seen >= self.ranks_expected

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of files per outcome, in the order of OUTCOMES; outcomes that did not occur are absent."""
        counts = Counter(f.outcome for f in self.files)
        return {o: counts[o] for o in OUTCOMES if counts[o]}


def fold_ranks(ranks: Iterable[int]) -> str:
    """Ranks folded as text, `(0, 1, 2, 3, 7)` → `"0-3,7"`."""
    parts: list[str] = []
    first = last = None
    for rank in sorted(set(ranks)):
        if last is not None and rank == last + 1:
            last = rank
            continue
        if first is not None:
            parts.append(str(first) if first == last else f"{first}-{last}")
        first = last = rank
    if first is not None:
        parts.append(str(first) if first == last else f"{first}-{last}")
    return ",".join(parts)


@lru_cache(maxsize=4096)
def unfold_ranks(text: str, limit: int = 1 << 24) -> tuple[int, ...]:
    """The inverse of `fold_ranks`. Raises ValueError; refuses more than `limit` ranks."""
    ranks: list[int] = []
    for part in text.split(",") if text else ():
        low, dash, high = part.partition("-")
        first, last = int(low), int(high) if dash else int(low)
        if last < first or last - first + len(ranks) >= limit:
            raise ValueError(f"expected ranks such as 0-3,7, found {text[:40]!r}")
        ranks.extend(range(first, last + 1))
    return tuple(ranks)
