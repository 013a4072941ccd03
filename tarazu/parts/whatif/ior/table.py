"""IOR's table of ranks (`-O saveRankPerformanceDetailsCSV=FILE`) → seconds of each rank, by phase.

IOR appends to the file: repetitions and both operations may be in one, each with all ranks in order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tarazu.errors import BadInput

HEADER = "access,rank,runtime-with-openclose,runtime,"
LONGEST_S = 1e9


class Group(NamedTuple):
    """One phase's rows."""

    operation: str
    ranks_s: tuple[float, ...]
    rank_bytes: float
    """Of one rank, as all have alike; 0 where it cannot be said."""
    ends_early: bool
    """Its last line is not whole."""


def is_table(text: str) -> bool:
    return text.lstrip().startswith(HEADER)


def groups(text: str, where: str) -> list[Group]:
    """Raises BadInput, with the line, for what is no such table."""
    made: list[Group] = []
    seconds: list[float] = []
    operation, size = "", 0.0

    def close(ends_early: bool = False) -> None:
        nonlocal seconds
        if seconds:
            made.append(Group(operation, tuple(seconds), size, ends_early))
        seconds = []

    lines = text.splitlines()
    last = len(lines)
    for number, line in enumerate(lines, 1):
        if line.startswith("access,") or not line.strip():
            close()
            continue
        row = _row(line)
        if row is None:
            if number == last:
                close(ends_early=True)
                break
            raise BadInput(f"{where}:{number}", "a row of IOR's table of ranks", line[:80])
        kind, rank, took_s, rate = row
        if kind != operation or rank == 0:
            close()
            operation, size = kind, took_s * rate
        if rank != len(seconds):
            raise BadInput(f"{where}:{number}", f"rank {len(seconds)}", rank)
        seconds.append(took_s)
    close()
    if not made:
        raise BadInput(where, "a table of ranks with rows", "none")
    return made


def _row(line: str) -> tuple[str, int, float, float] | None:
    """(operation, rank, seconds, bytes a second); None for what is none."""
    cells = line.split(",")
    if len(cells) != 6 or cells[0] not in ("write", "read"):
        return None
    if not (cells[1].isascii() and cells[1].isdecimal() and len(cells[1]) < 9):
        return None
    try:
        took_s, rate = float(cells[3]), float(cells[5])
    except ValueError:
        return None
    if not (0 <= took_s < LONGEST_S):
        return None
    return cells[0], int(cells[1]), took_s, rate if math.isfinite(rate) and rate > 0 else 0.0
